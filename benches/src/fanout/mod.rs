//! Fan-out servers and the clients that measure them.

pub mod axum;
pub mod client;
pub mod ours;
pub mod process;
pub mod queue;
pub mod server;
pub mod sockudo;
pub mod stats;
pub mod tls;
pub mod websockets;

use std::fmt;

/// A measurement's result; it ends with the first error.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A server that broadcasts what its publisher sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// do-core's tokio host and do-sync's `Room`.
    Ours,
    /// The same with [`cork`](do_core::tokio::Builder::cork) set to nothing.
    Uncorked,
    /// The same behind TLS.
    Tls,
    /// axum with read buffers of 4 KiB and a tokio broadcast channel.
    Axum,
    /// tokio-websockets over a tokio broadcast channel: what waits is drained, then flushed once.
    Websockets,
    /// A bounded queue for each socket, drained into one vectored write of shared frames. No WebSocket library.
    Queue,
    /// sockudo-ws with its pub/sub, in the loop of its documentation.
    Sockudo,
}

impl Contender {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Ours, Self::Uncorked, Self::Tls, Self::Axum, Self::Websockets, Self::Queue, Self::Sockudo];

    /// Its name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Uncorked => "ours-uncorked",
            Self::Tls => "ours-tls",
            Self::Axum => "axum-broadcast",
            Self::Websockets => "tokio-websockets",
            Self::Queue => "queue-writev",
            Self::Sockudo => "sockudo-ws",
        }
    }

    /// The contenders of a list of names with commas.
    ///
    /// # Errors
    /// A name that is none.
    pub fn list(names: &str) -> Outcome<Vec<Self>> {
        names.split(',').map(Self::named).collect()
    }

    /// The contender of this name.
    ///
    /// # Errors
    /// A name that is none.
    pub fn named(name: &str) -> Outcome<Self> {
        let found = Self::ALL.into_iter().find(|contender| contender.name() == name);
        found.ok_or_else(|| format!("there is no contender {name:?}").into())
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
