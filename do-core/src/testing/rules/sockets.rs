//! D WebSockets and hibernation.

use super::Rule;

pub(super) const RULES: &[Rule] = &[
    Rule::copy(
        "D1",
        "A socket has at most 10 tags of at most 256 UTF-8 bytes each; they keep their order and count once; the empty \
         text is a tag.",
    )
    .except("The platform counts an eleventh that repeats an earlier one; here it does not count."),
    Rule::copy("D2", "A socket is accepted once and in one way, and is used only after that."),
    Rule::hide(
        "D3",
        "The list of all sockets is newest first, the list of one tag oldest first.",
        "The order of sockets is not specified; the test kit shuffles them.",
    ),
    Rule::copy("D4", "Sockets are found by exactly their tag, and no tag means all of them."),
    Rule::copy("D5", "An object holds at most 32,768 sockets."),
    Rule::differ("D6", "A socket that was accepted and never answered stays in the list, open."),
    Rule::copy("D7", "The sub-protocol of a connection is the one that the object's response names."),
    Rule::copy("D8", "Text arrives as text and bytes as bytes, empty ones too."),
    Rule::copy(
        "D9",
        "Messages begin in their order and overlap where handlers wait. Those for an object that is not in memory \
         construct it once and lose nothing.",
    ),
    Rule::copy("D10", "A handler that fails leaves the object and the socket as they were."),
    Rule::copy("D11", "A message has at most 32 MiB; a longer one is an error to the object, and 1009 to its sender."),
    Rule::differ("D11b", "What a peer does not read is buffered without a bound, and keeps the object in memory."),
    Rule::copy("D12", "Whatever is sent that is not bytes is sent as text.")
        .unshown("a message is text or bytes by its type."),
    Rule::copy("D13", "Pings of the protocol are answered, and no object sees them."),
    Rule::copy("D14", "After the object's own close, messages of the peer arrive until its answer."),
    Rule::copy(
        "D15",
        "A close is told once, with code and reason: as the peer sent them, 1005 for a Close without a code, 1006 and \
         not clean for a lost connection, the object's own for the answer to its close.",
    ),
    Rule::copy("D16", "A peer that breaks the protocol is told to the object as an error, and no close follows it."),
    Rule::copy(
        "D17",
        "In the close handler the socket still has its tags and its attachment, and can send if the peer closed \
         properly.",
    ),
    Rule::hide(
        "D18",
        "While the close handler runs, the closing socket is still in the lists, until the first wait.",
        "The lists have it at that time, and `others` and the counts leave it out.",
    ),
    Rule::copy("D19", "A close that wakes an object is told as to one in memory."),
    Rule::copy(
        "D20",
        "A close takes a code from 1000 to 4999 without 1004, 1005, 1006 and 1015, and a reason of at most 123 bytes. A \
         second one does nothing; to send after it is an error.",
    ),
    Rule::copy("D21", "After the object's own close the socket is closing, and in the lists until the peer answers."),
    Rule::hide(
        "D22",
        "The peer's Close is not answered unless the object does so; the peer waits until the object leaves memory.",
        "It is answered after the close handler if the object did not.",
    ),
    Rule::hide(
        "D23",
        "The object has to answer a Close itself, and codes that must not be sent throw there.",
        "The answer has the peer's code, none for 1005, and 1002 for one that must not be sent.",
    ),
    Rule::differ(
        "D24",
        "After the object's own close and the peer's answer, the connection stays until the object leaves memory.",
    ),
    Rule::copy("D25", "A reset, a constructor that fails and a failed commit drop the sockets with 1006 and no event."),
    Rule::copy("D26", "An attachment has at most 16,384 serialized bytes; a longer one is an error, and the old one stays.")
        .except("It is kept as JSON, of which 16,368 bytes fit on every host."),
    Rule::copy("D27", "Attachments survive hibernation and end with the connection."),
    Rule::copy(
        "D28",
        "The auto-response answers exactly its text and nothing else. Each side has at most 2,048 bytes, and there is one \
         pair for an object.",
    ),
    Rule::copy("D29", "It answers without waking the object and without keeping it in memory, and survives hibernation."),
    Rule::copy("D30", "When it last answered is known for each socket, also for what it did in hibernation."),
    Rule::absent(
        "D31",
        "A time limit can be set for socket events.",
        "What it does is a defect: see D32. A handler has its own deadlines.",
    ),
    Rule::absent(
        "D32",
        "Beyond the limit the handler is cancelled and the object loses its storage, but not its memory.",
        "Nothing can be done with such an object.",
    ),
    Rule::copy("D33", "Sockets can be listed and written to in a constructor after a wake, and in an alarm."),
    Rule::absent(
        "D34",
        "A WebSocket that an object opens to somebody else does not hibernate.",
        "Objects open no WebSockets here.",
    ),
    Rule::copy("D35", "Sockets that are opened at the same moment hibernate as all others."),
];
