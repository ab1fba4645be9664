//! What objects saw, kept outside of the simulated process: no fault of the kit can take it back.

use super::ops::Script;
use do_core::{Error, ErrorKind, Response};
use std::{cell::RefCell, rc::Rc};

/// What an object does for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    Call(u32),
    /// Of a client, with its number among that client's messages.
    Message(u32, u32),
    Alarm {
        scheduled: i64,
        retry: u32,
        now: i64,
    },
    Closed(u32),
    Failed(u32),
    /// A gate's or background work of another run.
    Part(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Well,
    Failed,
    /// It was dropped.
    Cut,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    Constructed,
    Begins(Job),
    Ends(End),
    /// The row with that number, in a turn with that number.
    Writes {
        row: u32,
        turn: u32,
    },
    /// The slot was set or deleted in the transaction of that row.
    Alarm {
        row: u32,
        at: Option<i64>,
    },
    /// The last turn of an alarm's run writes that row.
    AlarmEnds {
        row: u32,
    },
    /// A text for a client.
    Sends {
        client: u32,
        text: u32,
    },
    Calls {
        call: u32,
    },
    Answered {
        call: u32,
        answer: Answer,
    },
}

/// What a run's own error begins with: told from those of the host.
pub(crate) const OWN: &str = "the run's own error: ";

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// With the rows that the object read.
    Well(Vec<u32>),
    /// The run failed by itself: what it wrote before stays (rule B11).
    Own,
    /// The host's.
    Host { indefinite: bool, text: String },
}

impl Answer {
    pub(crate) async fn read(answer: Result<Response, Error>) -> Self {
        let body = async { answer?.into_body().json(1 << 20).await };
        match body.await {
            Ok(rows) => Self::Well(rows),
            Err(error) => Self::of(&error),
        }
    }

    pub(crate) fn of(error: &Error) -> Self {
        if error.kind() == ErrorKind::Application && error.to_string().starts_with(OWN) {
            return Self::Own;
        }
        Self::Host { indefinite: error.is_indefinite(), text: format!("{error:?}") }
    }
}

/// An entry: which object, which instance of it, which run of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) object: u8,
    pub(crate) instance: u32,
    pub(crate) run: u32,
    pub(crate) what: What,
}

#[derive(Debug, Default)]
struct Inner {
    seen: Vec<Seen>,
    numbers: u32,
    scripts: Vec<Rc<Script>>,
}

thread_local! {
    static WITNESS: RefCell<Inner> = RefCell::default();
}

pub(crate) fn begin() {
    WITNESS.with_borrow_mut(|inner| *inner = Inner::default());
}

pub(crate) fn end() -> Vec<Seen> {
    WITNESS.with_borrow_mut(std::mem::take).seen
}

/// A number never given before in this run.
pub(crate) fn number() -> u32 {
    WITNESS.with_borrow_mut(|inner| {
        inner.numbers += 1;
        inner.numbers
    })
}

pub(crate) fn saw(seen: Seen) {
    WITNESS.with_borrow_mut(|inner| inner.seen.push(seen));
}

/// Scripts travel by number: requests and tables carry no code.
pub(crate) fn keep(script: &Script) -> u32 {
    WITNESS.with_borrow_mut(|inner| {
        inner.scripts.push(Rc::new(script.clone()));
        u32::try_from(inner.scripts.len() - 1).unwrap()
    })
}

pub(crate) fn script(number: u32) -> Rc<Script> {
    WITNESS.with_borrow(|inner| inner.scripts.get(number as usize).cloned().unwrap_or_default())
}
