//! The contract as a program: one suite of cases that holds every host to the numbered rules.
//!
//! A case has two halves. The object half is the [`Probe`], a class generic over its state that runs the steps
//! which requests and messages bring as JSON; [`route`] leads to it and is the entry on every host. The driver half
//! is one of [`cases`], which sees a host only through a [`Driver`]: requests, their bodies, WebSockets, time, eviction, a crash.
//! No closure crosses from one half to the other, so the same source runs over native threads and inside a Worker.

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
mod platform;
mod probe;
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

pub use case::{Case, Fault, Needs, Only, Outcome, Run};
pub use cases::cases;
pub use catalogue::{Listed, catalogue};
pub use deployment::Deployment;
pub use difference::{Difference, HostKind, differences};
pub use driver::{Client, Driver, Opened, PanicCost, Received};
pub use exchange::{Exchange, Head, Leave, Notices, Piece};
pub use lab::Lab;
pub use platform::platform_page;
pub use probe::Probe;
pub use route::route;
pub use rules::{Rule, Topic, Treatment, rules};
pub use thrown::Thrown;
