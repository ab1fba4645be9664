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

impl Difference {
    /// Whether the suite says why no case shows it.
    pub fn is_excused(&self) -> bool {
        super::rules::UNSHOWN.iter().any(|(id, _)| *id == self.id)
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
        rules: &["A9"],
        workerd: "The name that an object sees is the one its first caller came by, and stays for a minute or two after \
                  the instance left memory, for the next instance too.",
        tokio: "The first caller of each instance decides; while the object has sockets, one that comes by id changes \
                nothing.",
        kit: "As tokio.",
    },
    Difference {
        id: "globals",
        rules: &["A14"],
        workerd: "All objects of a Worker in one process live on one thread: a thread-local that one sets, the others \
                  see, as they see a `static`.",
        tokio: "Objects live on several threads: those of one thread share its thread-locals, and which ones that are \
                is not promised. A `static` of the program is shared by all, as anywhere.",
        kit: "As tokio.",
    },
    Difference {
        id: "no-network",
        rules: &["B3"],
        workerd: "What a socket was not sent yet, because its client does not read, keeps its object in memory.",
        tokio: "As workerd.",
        kit: "There is no network: what is sent has arrived.",
    },
    Difference {
        id: "background",
        rules: &["B4"],
        workerd: "An object that only sleeps and background work keep, without a connected client, is destroyed 70 to \
                  140 s after its last request.",
        tokio: "It stays for as long as the work takes, unless the host is told a limit.",
        kit: "As tokio.",
    },
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
        id: "cut-body",
        rules: &["B13", "C6"],
        workerd: "The body of a call between objects that a reset of its sender cuts off looks complete to its reader.",
        tokio: "Its reader gets an error.",
        kit: "As tokio.",
    },
    Difference {
        id: "kit-wire",
        rules: &["D8", "D11", "D13", "D16"],
        workerd: "Clients send frames, and what rules say about frames can be seen.",
        tokio: "As workerd.",
        kit: "It carries whole messages, not frames: what is about frames is not there.",
    },
    Difference {
        id: "many-sockets",
        rules: &["D5"],
        workerd: "The limit is the same, but 32,768 connections are more than a suite can open to a process.",
        tokio: "As workerd.",
        kit: "A socket costs no descriptor, so that the limit can be reached.",
    },
    Difference {
        id: "dropped-101",
        rules: &["D6"],
        workerd: "A socket that was accepted and whose 101 is not returned stays in the lists, open, without a peer, until its \
                  other end is collected as garbage.",
        tokio: "It is lost: its close handler is told 1006.",
        kit: "As tokio.",
    },
    Difference {
        id: "deflate",
        rules: &["D7"],
        workerd: "permessage-deflate is agreed on with a client that offers it.",
        tokio: "No extension is agreed on.",
        kit: "There is no handshake.",
    },
    Difference {
        id: "not-utf8",
        rules: &["D8"],
        workerd: "Text that is not UTF-8 is delivered with replacement characters.",
        tokio: "It breaks the protocol (RFC 6455): the error handler runs, and the peer is closed with 1007.",
        kit: "Texts of its clients are UTF-8.",
    },
    Difference {
        id: "outbox",
        rules: &["D11b"],
        workerd: "What a peer does not read is buffered without a bound; `buffered_bytes` tells how much that is, and \
                  `send` never fails for it.",
        tokio: "An outbox is bounded. The message that finds it full fails as overloaded, and the peer is closed with 1013.",
        kit: "As tokio.",
    },
    Difference {
        id: "close-codes",
        rules: &["D15"],
        workerd: "A Close frame whose payload RFC 6455 forbids (a code below 1000, 1004 to 1006, 1015 to 2999 or above \
                  4999, half a code, a reason that is not UTF-8) is a clean close like others. It is answered by the same \
                  code, or by 1002 where that cannot be sent.",
        tokio: "It breaks the protocol: the error handler runs, and the peer is closed with 1002, or 1007 for the reason.",
        kit: "There are no frames.",
    },
    Difference {
        id: "long-control",
        rules: &["D13", "D16"],
        workerd: "A ping may be longer than 125 bytes.",
        tokio: "A control frame of more than 125 bytes breaks the protocol (RFC 6455).",
        kit: "There are no frames.",
    },
    Difference {
        id: "close-end",
        rules: &["D16", "D24"],
        workerd: "After the object's own close and the peer's answer, and after a fault of the peer, TCP ends only when the \
                  object leaves memory, about 10 s later. After a close that the peer began it ends with the answer.",
        tokio: "TCP ends as soon as both sides have said Close.",
        kit: "There is no TCP.",
    },
    Difference {
        id: "close-wait",
        rules: &["D21", "D24"],
        workerd: "A peer that does not answer the object's close stays connected, its socket in the lists and closing, until \
                  it answers or leaves, also while the object is out of memory.",
        tokio: "It is dropped after 10 s, and the close handler is told 1006.",
        kit: "As tokio.",
    },
    Difference {
        id: "alarm-wall-time",
        rules: &["E7"],
        workerd: "By its source, a run of fifteen minutes has failed. No case shows it, because they would be real.",
        tokio: "A run of fifteen minutes has failed. The object goes on.",
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
