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
    /// What it is about, in a few words: letters and blanks alone, because it is a heading that is linked to.
    pub title: &'static str,
    /// The rules that it is about, or the word that cases without a number begin with.
    pub rules: &'static [&'static str],
    /// What happens in workerd.
    pub workerd: &'static str,
    /// What happens on the native host.
    pub tokio: &'static str,
    /// What happens in the test kit.
    pub kit: &'static str,
}

impl Difference {
    /// One of another suite's list, of which each host is still to say what happens there.
    pub const fn new(id: &'static str, title: &'static str, rules: &'static [&'static str]) -> Self {
        Self { id, title, rules, workerd: "", tokio: "", kit: "" }
    }

    /// The same with what happens in workerd.
    #[must_use]
    pub const fn in_workerd(mut self, what: &'static str) -> Self {
        self.workerd = what;
        self
    }

    /// The same with what happens on the native host.
    #[must_use]
    pub const fn on_tokio(mut self, what: &'static str) -> Self {
        self.tokio = what;
        self
    }

    /// The same with what happens in the test kit.
    #[must_use]
    pub const fn in_kit(mut self, what: &'static str) -> Self {
        self.kit = what;
        self
    }

    /// Whether the suite says why no case shows it.
    pub fn is_excused(&self) -> bool {
        self.excuse().is_some()
    }

    /// Why no case shows it, if none does.
    pub(super) fn excuse(&self) -> Option<&'static str> {
        super::rules::UNSHOWN.iter().find(|(id, _)| *id == self.id).map(|(_, why)| *why)
    }

    /// What happens on a host of this kind.
    pub fn on(&self, host: HostKind) -> &'static str {
        match host {
            HostKind::Kit => self.kit,
            HostKind::Tokio => self.tokio,
            HostKind::Workerd => self.workerd,
        }
    }
}

/// All of them, in the order of the rules.
pub fn differences() -> &'static [Difference] {
    DIFFERENCES
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        id: "name-of-instance",
        title: "the name that an instance sees",
        rules: &["A9"],
        workerd: "The name that the first caller came by stays with the object for a minute or two after its instance \
                  left memory: the next instance has it too, whoever wakes it.",
        tokio: "The first caller of each instance decides. While the object has sockets, one that comes by \
                id changes nothing.",
        kit: "As tokio.",
    },
    Difference {
        id: "globals",
        title: "what objects of one program share",
        rules: &["A14"],
        workerd: "All objects of a Worker in one process live on one thread: a thread-local that one sets, the others \
                  see, as they see a `static`.",
        tokio: "Objects live on several threads. Those of one thread share its thread-locals, and which ones those \
                are is not promised. A `static` is shared by all of the process.",
        kit: "All objects live on the thread of the test and share its thread-locals.",
    },
    Difference {
        id: "no-network",
        title: "what was not sent yet",
        rules: &["B3"],
        workerd: "What a socket was not sent yet, because its client does not read, keeps its object in memory.",
        tokio: "As workerd.",
        kit: "What is sent has arrived, whether it is read or not. Only for a client that is told to stall is it as \
              on tokio.",
    },
    Difference {
        id: "background",
        title: "how long background work lasts",
        rules: &["B4"],
        workerd: "An object that only sleeps and background work keep, without a connected client, is destroyed 70 to \
                  140 s after its last request.",
        tokio: "It stays for as long as the work takes, unless the host has a limit (`Builder::background`).",
        kit: "As tokio.",
    },
    Difference {
        id: "panic",
        title: "what a panic costs",
        rules: &["B11"],
        workerd: "Built with panic=unwind, a panic resets its object alone, and what its turn wrote stays. Built with \
                  panic=abort, it costs every object of the isolate its memory, and no request in flight is answered.",
        tokio: "A panic resets its object alone, and what its turn wrote is undone.",
        kit: "As tokio.",
    },
    Difference {
        id: "commit-doubt",
        title: "calls that a failed commit ends",
        rules: &["C6"],
        workerd: "Each is told that it may have taken effect: which of its turns was undone is not told.",
        tokio: "One whose only turn was undone is told that nothing of it happened; one of which an earlier turn was kept, \
                that it may have taken effect.",
        kit: "As tokio.",
    },
    Difference {
        id: "cut-body",
        title: "bodies of calls that break off",
        rules: &["B13", "C6"],
        workerd: "When a reset of the caller cuts off the body that it sends to another object, or the source of that \
                  body fails, the body may look complete to its reader. Send the length with it.",
        tokio: "Its reader gets an error.",
        kit: "As tokio.",
    },
    Difference {
        id: "client-gone",
        title: "when a client is known to be gone",
        rules: &["B17"],
        workerd: "A client that closes its connection is noticed with the first write after it, which still succeeds; \
                  one that ends only its own side goes on reading.",
        tokio: "As workerd, where `Host::serve` serves. Other servers may take a client that ends its own side for gone, \
                as hyper and axum do by default.",
        kit: "There is no connection: who drops the response is gone at once.",
    },
    Difference {
        id: "early-calls",
        title: "calls before a commit that fails",
        rules: &["C4"],
        workerd: "A call to another object that was made before the write whose commit fails may be overtaken by the \
                  reset, and then does not leave.",
        tokio: "It leaves.",
        kit: "As tokio.",
    },
    Difference {
        id: "unsendable",
        title: "responses that cannot be sent",
        rules: &["response"],
        workerd: "A status that cannot be sent (1xx, 600 and above) or a header that is not UTF-8 fails the call with \
                  `Invalid`, also between objects.",
        tokio: "Between objects the caller sees what was answered. Clients get 500 for such a status, and such a \
                header as it is.",
        kit: "As tokio.",
    },
    Difference {
        id: "handshakes",
        title: "handshakes that are wrong",
        rules: &["D2"],
        workerd: "The platform checks some of it and answers by itself: the object sees no handshake that is wrong, \
                  and some that should be refused are accepted.",
        tokio: "The object sees the request; `accept` refuses what RFC 6455 forbids.",
        kit: "Its clients make right handshakes.",
    },
    Difference {
        id: "many-sockets",
        title: "very many sockets",
        rules: &["D5"],
        workerd: "The limit is the same, but 32,768 connections are more than a suite can open to a process.",
        tokio: "As workerd.",
        kit: "A socket costs no descriptor, so that the limit can be reached.",
    },
    Difference {
        id: "dropped-101",
        title: "a socket whose response is dropped",
        rules: &["D6"],
        workerd: "A socket that was accepted and whose 101 is not returned stays in the lists, open, without a peer, until its \
                  other end is collected as garbage.",
        tokio: "It is lost: its close handler is told 1006.",
        kit: "As tokio.",
    },
    Difference {
        id: "deflate",
        title: "compression of messages",
        rules: &["D7"],
        workerd: "permessage-deflate is agreed on with a client that offers it.",
        tokio: "No extension is agreed on.",
        kit: "Its clients offer no extension.",
    },
    Difference {
        id: "not-utf8",
        title: "text that is not UTF-8",
        rules: &["D8"],
        workerd: "It is delivered with replacement characters.",
        tokio: "It breaks the protocol (RFC 6455): the error handler runs, and the peer is closed with 1007.",
        kit: "Texts of its clients are UTF-8.",
    },
    Difference {
        id: "kit-wire",
        title: "frames",
        rules: &["D8", "D11", "D13", "D16"],
        workerd: "Clients send frames: fragments, pings, what is forbidden.",
        tokio: "As workerd.",
        kit: "It carries whole messages and Closes: what is about frames is not there.",
    },
    Difference {
        id: "long-control",
        title: "frames that are taken leniently",
        rules: &["D13", "D16"],
        workerd: "A ping may be longer than 125 bytes, and the frames of a client need not be masked.",
        tokio: "Both break the protocol (RFC 6455).",
        kit: "There are no frames.",
    },
    Difference {
        id: "outbox",
        title: "peers that do not read",
        rules: &["D11b"],
        workerd: "What a peer does not read is buffered without a bound. `buffered_bytes` tells how much that is; \
                  `send` never fails for it.",
        tokio: "An outbox is bounded (`Builder::outbox_bytes`). The message that finds it full fails as overloaded, \
                and the peer is closed with 1013.",
        kit: "As tokio.",
    },
    Difference {
        id: "close-codes",
        title: "Close frames that are forbidden",
        rules: &["D15"],
        workerd: "A Close frame whose payload RFC 6455 forbids (a code below 1000, 1004 to 1006, 1015 to 2999 or \
                  above 4999, half a code, a reason that is not UTF-8) is a clean close like others. It is answered \
                  by the same code, without one for 1005 and for half a code, and by 1002 where the code cannot be \
                  sent.",
        tokio: "It breaks the protocol: the error handler runs, and the peer is closed with 1002, or 1007 for the \
                reason.",
        kit: "As tokio, for the codes; its clients send neither half a code nor a reason that is not UTF-8.",
    },
    Difference {
        id: "close-end",
        title: "when a closed connection ends",
        rules: &["D16", "D24"],
        workerd: "After the object's own close and the peer's answer, and after a fault of the peer, TCP ends only \
                  when the object leaves memory, about 10 s later. After a close that the peer began it ends with the \
                  answer.",
        tokio: "TCP ends as soon as both sides have said Close.",
        kit: "As tokio, without TCP: a client hears of the end then.",
    },
    Difference {
        id: "close-wait",
        title: "peers that do not answer a Close",
        rules: &["D21", "D24"],
        workerd: "A peer that does not answer the object's close stays connected, its socket in the lists and \
                  closing, until it answers or leaves, also while the object is out of memory.",
        tokio: "It is dropped after 10 s, and the close handler is told 1006.",
        kit: "As tokio.",
    },
    Difference {
        id: "alarm-wall-time",
        title: "how long an alarm may run",
        rules: &["E7"],
        workerd: "By its source, a run of fifteen minutes has failed. No case shows it, because those would be real \
                  minutes.",
        tokio: "A run of fifteen minutes has failed. The object goes on.",
        kit: "As tokio.",
    },
    Difference {
        id: "sql-build",
        title: "how SQLite is built",
        rules: &["F12"],
        workerd: "UPDATE and DELETE take ORDER BY and LIMIT. The width and the precision of printf end at 100,000. \
                  ANALYZE keeps averages only, in sqlite_stat1.",
        tokio: "The bundled SQLite is built without a LIMIT for UPDATE and DELETE, which is a syntax error: select \
                the rows by rowid instead. The width of printf has no limit of its own. ANALYZE keeps samples as \
                well, in sqlite_stat4.",
        kit: "As tokio.",
    },
    Difference {
        id: "sql-limits",
        title: "limits of SQL",
        rules: &["F15", "F16"],
        workerd: "Locally a function has at most 127 arguments, and a value or a row 8,388,642 bytes. In production \
                  that is said to be 32, and 2,000,000.",
        tokio: "The limits of production, so that what works here works there. `Builder::local_sql_limits` chooses \
                the local ones.",
        kit: "As tokio.",
    },
    Difference {
        id: "rows-counted",
        title: "how rows are counted",
        rules: &["schedule"],
        workerd: "Each statement tells how many rows it read and wrote, as they are billed.",
        tokio: "Rows are not counted: what would be billed is nobody's, and `Rows::rows_read` is nothing.",
        kit: "As tokio.",
    },
];
