//! E alarms, F SQL, G the storage that is not offered.

use super::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::copy(
        "E1",
        "There is one alarm: to set it replaces it, sooner or later, from the call on and whether it is awaited or not. A \
         time that is none, or is after the year 2189, is refused.",
    ),
    Rule::copy("E2", "A time in the past runs at once, and none runs early."),
    Rule::copy(
        "E3",
        "The slot is empty while its handler runs, and holds the old time between two attempts.",
    ),
    Rule::copy("E4", "Success empties the slot unless the handler set it anew."),
    Rule::hide(
        "E4b",
        "To set the alarm in its run to now, while that is still the millisecond for which the run was set, is lost \
         locally, though the slot shows it; in production it is reported to come tens of seconds late. A time 1 ms ahead \
         comes.",
        "While a run lasts, the slot is set at least 1 ms ahead on Workers, as `Schedule` does on all hosts.",
    ),
    Rule::copy("E5", "Other events are let in while the handler waits; two runs never overlap."),
    Rule::copy("E6", "The handler is told the time it was set to, and which attempt this is."),
    Rule::copy(
        "E7",
        "A handler that fails or takes fifteen minutes, a failed commit or constructor and a reset are tried again; \
         background work that fails is not.",
    ),
    Rule::copy(
        "E8",
        "There are 6 more attempts, 2 s after the first and twice as long after each, with up to a quarter more. Then the \
         alarm is dropped.",
    ),
    Rule::copy(
        "E9",
        "Memory and what was written stay after a failed run. A failing constructor is tried without end.",
    ),
    Rule::copy("E10", "A handler that sets or deletes the alarm and then fails is not tried again.")
        .except("A slot of a `Schedule` that is set in a run that then fails is tried again, and comes at its new time too."),
    Rule::copy(
        "E11",
        "Between two attempts, deleting the alarm ends them, and a sooner time waits for the attempt that is due.",
    )
    .except("A slot of a `Schedule` that is set between two attempts comes at its own time."),
    Rule::copy(
        "E12",
        "If the constructor of an object that is woken by its alarm sets or deletes the alarm, the handler does not run.",
    )
    .except("What it does with a `Schedule` is kept and costs no run."),
    Rule::copy("E13", "What a transaction did to the alarm is undone with it."),
    Rule::copy("E14", "`delete_all` empties the alarm slot too, also from within the handler."),
    Rule::hide(
        "E15",
        "A class without an alarm handler cannot set an alarm, except in its constructor.",
        "Every class has a handler; the one it has by default fails, and is tried again.",
    ),
    Rule::copy(
        "E16",
        "An alarm wakes an object and survives kills: a missed one fires after the start, one that was running runs again \
         as a first attempt.",
    ),
    Rule::copy(
        "E17",
        "The time is kept with the object, and in an index that may be earlier and never later.",
    )
    .unshown(
        "where it is kept is not seen from outside. The native host's order of writes has tests of its own.",
    ),
    Rule::copy("E18", "An alarm that comes due behind a closed gate waits for it."),
    Rule::copy(
        "F1",
        "Numbers bind as reals: 5 is an integer in a column that is declared so, and 5.0 in an expression or as text.",
    ),
    Rule::copy("F2", "Text, blobs and nothing bind as what they are; NaN binds as nothing.")
        .except("Booleans bind as 0 and 1, not as text."),
    Rule::hide(
        "F3",
        "Integers and reals are read as doubles, so that integers beyond 2^53 lose digits without a word.",
        "Integers outside ±(2^53-1) are refused when bound, read as the nearest double, and an error where an integer is \
         asked for.",
    ),
    Rule::copy("F4", "Of columns with the same name, all are in a row; by name the last one is found."),
    Rule::copy("F5", "There have to be exactly as many values as the highest parameter's index."),
    Rule::hide(
        "F6",
        "Statements in one text run in order. Only the last has parameters and gives rows, and an error leaves what the \
         ones before it did. A comment after the last is an error.",
        "All is copied but the last: comments may stand anywhere.",
    ),
    Rule::copy("F7", "A statement has run when the call returns, and its error is the call's."),
    Rule::hide(
        "F8",
        "Results are cursors with a position.",
        "A result is read as a whole, within a bound, or row by row in a callback. There is nothing to leave open.",
    ),
    Rule::hide(
        "F9",
        "Cursors are independent of each other, live across waits, and lock out changes of the schema.",
        "No cursor lives longer than its call, within which it keeps to this.",
    ),
    Rule::copy("F10", "An error has SQLite's message and the name of its code."),
    Rule::copy(
        "F11",
        "Statements about transactions, other databases, temporary tables and the host's own tables are refused, and so \
         are other virtual tables than those of full-text search and R-trees.",
    ),
    Rule::copy(
        "F12",
        "All other statements are there, and the functions for mathematics, texts, dates, JSON, full-text search and \
         R-trees.",
    ),
    Rule::copy(
        "F13",
        "A few pragmas are allowed, all of them about one connection or read-only. `user_version` is none of them: \
         `migrate` keeps its count in a table.",
    ),
    Rule::copy(
        "F14",
        "Foreign keys are checked; the pragma that ends this has no effect after a write of the turn.",
    ),
    Rule::copy(
        "F15",
        "A table and a result have at most 100 columns, a statement 100 parameters and 100,000 bytes, a pattern 50 bytes, a \
         compound SELECT 5 terms, an expression a depth of 100, a function 127 arguments locally and 32 in production. \
         Triggers nest 10 deep.",
    ),
    Rule::copy("F16", "A value or a row has at most 8,388,642 bytes locally, 2,000,000 in production."),
    Rule::copy("F17", "The database's size is that of its pages in use."),
    Rule::copy(
        "F18",
        "A transaction that fails undoes SQL and alarm; one inside another undoes itself alone; an error that is caught \
         inside undoes nothing.",
    )
    .except("They nest 64 deep on every host; the platform names no limit."),
    Rule::absent("F19", "A transaction may wait, and holds back all other events.", INSTEAD),
    Rule::absent("F20", "There is a key-value store beside SQL, in the same database.", INSTEAD),
    Rule::absent("F21", "A namespace can be without SQL.", "Every object has SQL."),
    Rule::copy("F22", "Statements are cached, and a schema that has changed is noticed."),
    Rule::hide(
        "G1",
        "The storage without SQL keeps structured values under keys, in the order of the keys' bytes.",
        "`KeyValue` does so in a table of the object's SQL.",
    ),
    Rule::hide("G2", "Its values are structured clones, made at the call.", "Those of `KeyValue` are JSON, made at the call."),
    Rule::hide(
        "G3",
        "Its lists take ranges, prefixes, directions and limits, and throw where these make no sense together.",
        "`Keys` has them all. Conditions that exclude each other give an empty list.",
    ),
    Rule::hide(
        "G4",
        "It has limits in production that it does not have locally.",
        "`KeyValue` has the same on every host: 2,048 bytes of a key, 1,999,936 of an entry, 100 keys in a call.",
    ),
    Rule::absent(
        "G5",
        "A sync waits for earlier writes; bookmarks lead back in time, but only in production.",
        "What leaves an object waits for its writes by itself. Nothing local could hold hosts to bookmarks.",
    ),
    Rule::absent("G6", "Its operations ignore options that they do not know.", "Options are methods here."),
    Rule::absent("G7", "Its deletion of everything empties the database too.", "`delete_all` is rule E14."),
];

/// Why the storage API without SQL is not there.
const INSTEAD: &str = "There are SQL with synchronous transactions, and `KeyValue` on it.";
