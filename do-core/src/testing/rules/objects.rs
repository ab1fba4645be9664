//! A identity and routing, B lifecycle, C gates.

use super::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::copy(
        "A1",
        "The same name is always the same object of its namespace; any other text, down to a blank or the form of a \
         letter, is another one. An id is written as 64 lower-case hexadecimal digits.",
    ),
    Rule::copy("A2", "The empty text is a name."),
    Rule::copy("A3", "A unique id is random and has no name."),
    Rule::copy("A4", "An id is read back from its text in either case, and then has no name."),
    Rule::copy("A5", "Text that is no id, or the id of another namespace, is refused."),
    Rule::hide(
        "A6",
        "Locally, an id of another namespace reaches an object of this one under the same bytes.",
        "An id that is not of the namespace is an error.",
    ),
    Rule::copy("A7", "A stub made from a name reaches the object of the name's id."),
    Rule::copy("A8", "Ids are equal when their 32 bytes are, whatever their names."),
    Rule::hide(
        "A9",
        "An object knows its name if the caller that brought it into memory came by name; it never learns a name of \
         more than 1,024 bytes.",
        "The first half is copied. A name of more than 1,024 bytes is an error.",
    ),
    Rule::copy("A10", "An object that is woken by its alarm knows its name."),
    Rule::copy("A11", "Making a stub constructs nothing."),
    Rule::hide(
        "A12",
        "A call to an address without an origin throws. Locally, a jurisdiction is refused and a location hint has no \
         effect.",
        "An address without an origin is completed from the header `Host`. Jurisdictions and location hints are not \
         offered.",
    ),
    Rule::copy("A13", "Calls that are begun one after the other on one stub arrive in that order."),
    Rule::differ("A14", "All objects of a process share one isolate, and so the globals of the program."),
    Rule::copy("B1", "The first event constructs the object, and events wait for the constructor."),
    Rule::copy(
        "B2",
        "An object that was idle for 10 s leaves memory. Its fields are lost, its storage and its sockets are not.",
    ),
    Rule::copy(
        "B3",
        "A timer, background work, a call under way, a handler that waits, an unfinished response and what a socket was \
         not sent yet keep an object in memory. An alarm that is set and hibernating sockets do not.",
    ),
    Rule::differ(
        "B4",
        "Without a connected client, an object that only timers or background work keep is removed 70 to 140 s after \
         its last request.",
    ),
    Rule::copy("B5", "A setting of the host can keep objects in memory for good.").unshown(
        "it is `preventEviction` in workerd's configuration and `Builder::idle` natively, and no object sees it.",
    ),
    Rule::copy(
        "B6",
        "A hibernating socket stays connected however long it is silent; its next message constructs the object.",
    ),
    Rule::copy(
        "B7",
        "A constructor that fails gives its error to the requests that waited for it and drops the object's sockets. \
         The next request constructs again.",
    ),
    Rule::copy(
        "B8",
        "While a gate is closed all other events wait. The gate's work gives its value to its caller.",
    ),
    Rule::copy("B9", "A gate whose work fails resets the object, even if its caller takes the error."),
    Rule::copy(
        "B10",
        "A gate that is closed for 30 s resets the object, and what waited fails as overloaded. So does the 65th gate that \
         is opened inside others.",
    ),
    Rule::copy("B11", "An error out of a handler resets nothing: memory and what was written stay."),
    Rule::copy("B12", "The class and the message of an error cross a stub to the caller.")
        .except("Own properties of an error are not offered."),
    Rule::hide(
        "B13",
        "`abort` ends the instance where it stands: what is in flight fails, sockets are lost without an event, and \
         what was written in the turn is undone.",
        "`reset` fails what is in flight and loses memory and sockets in the same way, but keeps what was written. \
         `abort` is not offered, because it leaves a Worker written in Rust without an answer for good.",
    ),
    Rule::hide(
        "B14",
        "A stub that has seen a reset fails from then on.",
        "A stub makes itself anew and goes on working.",
    ),
    Rule::copy("B15", "Background work that fails is nobody's error."),
    Rule::copy("B16", "A handler runs to its end although its client has left."),
    Rule::hide(
        "B17",
        "A client that closed is noticed about 1 ms after the first write that follows; one that reset the connection, \
         at once; one that closed only its own side, never.",
        "A body's sender learns of it by the fastest signal that there is, and at the latest with the second write, so \
         that a heartbeat is the guarantee on all hosts.",
    ),
    Rule::absent(
        "B18",
        "No hook runs before an object leaves memory.",
        "Nothing could rely on it: a process that is killed runs no hook.",
    ),
    Rule::fact(
        "B19",
        "A switch of the local runtime evicts all objects at once; sockets hibernate.",
        "The suite evicts by it in workerd.",
    ),
    Rule::copy("C1", "To read, change and write with nothing but storage in between is atomic."),
    Rule::copy(
        "C2",
        "Where code waits for a timer, a call or a stream, other events are let in, unless a gate is closed.",
    ),
    Rule::fact(
        "C3",
        "Locally, even long runs of storage operations and syncs let no other event in.",
        "It is not promised: storage is synchronous for our objects, so nothing waits for it.",
    ),
    Rule::copy(
        "C4",
        "Responses, messages and calls made after a write are held until it is durable. If the commit fails none \
         leaves, and the object is reset.",
    ),
    Rule::copy("C5", "What is written between two waits is committed as one; an error does not undo it."),
    Rule::copy(
        "C6",
        "A commit that fails gives the caller an error, resets the object, and an alarm is tried again.",
    ),
    Rule::absent(
        "C7",
        "A single write can be exempt from holding back what is sent.",
        "One rule for all writes is easier to reason about than the milliseconds are worth.",
    ),
    Rule::copy("C8", "What was acknowledged survives a kill of the process."),
    Rule::fact(
        "C9",
        "A storage operation that hangs for 30 s resets the object.",
        "Read in the runtime's source and never seen.",
    ),
    Rule::copy("C10", "Messages to a socket keep their order around writes."),
];
