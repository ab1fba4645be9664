//! `use do_core::prelude::*;` is all that a file with an object needs.

pub use crate::{
    Accept, Alarm, AlarmInfo, AlarmScheduler, AutoResponse, Body, Close, CloseCode, CloseFrame,
    DurableObject, Env, EnvOf, Error, ErrorKind, Failure, Job, Message, Namespace, ObjectName, ObjectState,
    Plan, Request, RequestExt, Response, Schedule, Slot, Socket, SocketOf, SocketRegistry, SqlExt,
    SqlStorage, Stub, StubOf, Tag, Timestamp, Upgrade, object_name, reply, tag,
};
pub use http::{Method, StatusCode};
pub use std::time::Duration;

/// What handlers return: `?` takes any error.
pub type Result<T, E = Failure> = core::result::Result<T, E>;
