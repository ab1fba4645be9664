//! Where hosts differ and are meant to: the suite's own list, of which PLATFORM.md is made.

/// A kind of host, as far as rules hold on one and not on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HostKind {
    /// The test kit: the engine over real files, without a network.
    Kit,
    /// The native host.
    Tokio,
    /// Cloudflare's own runtime.
    Workerd,
}

impl HostKind {
    /// All kinds, in the order in which they are reported.
    pub const ALL: &'static [Self] = &[Self::Kit, Self::Tokio, Self::Workerd];

    /// What it is called on command lines and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kit => "kit",
            Self::Tokio => "tokio",
            Self::Workerd => "workerd",
        }
    }
}

/// A documented difference. A case that holds on some hosts only names the one that is its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// What cases name it by.
    pub id: &'static str,
    /// The rules that it is about.
    pub rules: &'static [&'static str],
    /// What happens in workerd.
    pub workerd: &'static str,
    /// What happens on the native host.
    pub tokio: &'static str,
    /// What happens in the test kit.
    pub kit: &'static str,
}

/// All of them, in the order of the rules.
pub fn differences() -> &'static [Difference] {
    DIFFERENCES
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        id: "panic",
        rules: &["B11"],
        workerd: "A panic resets its object alone in a Worker built with panic=unwind, and undoes nothing that its turn \
                  wrote. Built with panic=abort it costs every object of the isolate its memory, and no request in \
                  flight is answered.",
        tokio: "A panic resets its object alone, and its turn is rolled back.",
        kit: "As tokio.",
    },
    Difference {
        id: "client-gone",
        rules: &["B17"],
        workerd: "A client that closes its connection is noticed with the first write after it, which still succeeds; \
                  one that only ends its own side goes on reading.",
        tokio: "A client that closes its connection, or only its own side of it, is noticed at once.",
        kit: "As tokio.",
    },
    Difference {
        id: "sql-build",
        rules: &["F12"],
        workerd: "UPDATE and DELETE take ORDER BY and LIMIT. The width and the precision of printf end at 100,000. \
                  ANALYZE keeps averages only, in sqlite_stat1.",
        tokio: "The bundled SQLite is built without a LIMIT for UPDATE and DELETE, which is a syntax error: select the \
                rows by rowid instead. The width of printf has no limit of its own. ANALYZE keeps samples as well, in \
                sqlite_stat4.",
        kit: "As tokio.",
    },
];
