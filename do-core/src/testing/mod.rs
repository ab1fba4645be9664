//! The contract as a program: one suite of cases that holds every host to the numbered rules.
//!
//! A case has two halves. The object half is the [`Probe`], a class generic over its state that runs the steps
//! which requests and messages bring as JSON; [`route`] leads to it and is the entry on every host. The driver half
//! is one of [`cases`], which sees a host only through a [`Driver`]: requests, their bodies, WebSockets, time, eviction, a crash.
//! No closure crosses from one half to the other, so the same source runs over native threads and inside a Worker.
//!
//! # Suites of other crates
//! A crate that builds on objects can hold hosts to its own rules in the same way: a class and an entry of its own, and
//! [`Case`]s over the same [`Driver`]s. For those are [`Case::new`] and what it can say of a case, the [`Lab`], of which
//! [`ask`](Lab::ask), [`connect`](Lab::connect) and [`eventually`](Lab::eventually) take any path, [`ClientExt`], [`same`]
//! and [`holds`], and [`Difference::new`] for a list of its own. An entry that answers with JSON and 200, or with 500 and
//! `{"error": ..}`, a [`Thrown`], is understood.

mod alarms;
mod bodies;
mod case;
mod cases;
mod catalogue;
mod deployment;
mod difference;
mod driver;
mod exchange;
mod first_event;
mod lab;
mod life;
mod log;
mod platform;
mod probe;
mod query;
mod route;
mod rules;
mod run;
mod schedule_steps;
mod socket_steps;
mod sockets;
mod sql;
mod step;
pub(crate) mod tasks;
mod thrown;

pub use case::{Case, Fault, Needs, Only, Outcome, Run, holds, same};
pub use cases::cases;
pub use catalogue::{Listed, Nowhere, catalogue, listed};
pub use deployment::Deployment;
pub use difference::{Difference, HostKind, differences};
pub use driver::{Client, Driver, Opened, PanicCost, Received};
pub use exchange::{Exchange, Head, Leave, Piece};
pub use lab::{ClientExt, Lab, closed};
pub use log::Log;
pub use platform::platform_page;
pub use probe::Probe;
pub use query::Query;
pub use route::{percent_decoded, percent_encoded, route};
pub use rules::{Rule, Topic, Treatment, rules};
pub use tasks::{Local, all, both, unless};
pub use thrown::Thrown;
