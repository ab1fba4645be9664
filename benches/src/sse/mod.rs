//! Servers of server-sent events and the clients that measure them.
//!
//! Every server does what `POST /publish` [orders](order::Order); any other path is a stream.

pub mod axum;
pub mod body;
pub mod client;
pub mod order;
pub mod ours;
pub mod reader;

use crate::fanout::{
    Outcome,
    server::{Drops, spawn},
};
use std::fmt;
use tokio::net::TcpListener;

/// A server of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// A broadcast of a feed in an object, over do-core's own server.
    Served,
    /// The same mounted in axum.
    Mounted,
    /// A broadcast of a hub in a handler of axum, without objects.
    Hub,
    /// As [`Hub`](Self::Hub), with events that are numbered and kept in memory.
    HubPublished,
    /// As [`Served`](Self::Served), with events that are numbered and kept in memory.
    Published,
    /// As [`Served`](Self::Served), with events that are numbered and kept in SQLite.
    Stored,
    /// axum's `Sse` over a tokio broadcast channel, as its documentation does it.
    Axum,
    /// hyper with a bounded queue of shared, encoded bytes for each connection: nothing but the transport.
    Body,
    /// The same in a handler of axum.
    BodyInAxum,
}

impl Contender {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Served,
        Self::Mounted,
        Self::Hub,
        Self::HubPublished,
        Self::Published,
        Self::Stored,
        Self::Axum,
        Self::Body,
        Self::BodyInAxum,
    ];

    /// Its name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Served => "ours",
            Self::Mounted => "ours-in-axum",
            Self::Hub => "ours-hub",
            Self::HubPublished => "ours-hub-published",
            Self::Published => "ours-published",
            Self::Stored => "ours-stored",
            Self::Axum => "axum-sse",
            Self::Body => "hyper-body",
            Self::BodyInAxum => "axum-body",
        }
    }

    /// Whether it keeps what it sent for those who come back.
    #[must_use]
    pub const fn keeps(self) -> bool {
        matches!(self, Self::HubPublished | Self::Published | Self::Stored)
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

/// Starts a server.
///
/// # Errors
/// When there is none of that name, or its host cannot start.
pub async fn start(
    contender: &str,
    listener: TcpListener,
    drops: Drops,
) -> Outcome<Option<do_core::tokio::Host>> {
    match Contender::named(contender)? {
        Contender::Axum => spawn(axum::serve(listener, drops)),
        Contender::Body => spawn(body::serve(listener, drops)),
        Contender::BodyInAxum => spawn(body::serve_in_axum(listener, drops)),
        ours => return ours::serve(listener, ours, drops),
    }
    Ok(None)
}
