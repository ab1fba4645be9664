//! The latest events, in memory.

use crate::History;
use bytes::Bytes;
use do_core::{Gap, Position, Timestamp};
use std::{collections::VecDeque, sync::Arc};

/// Most bytes of the history that one stream is shown before it ends, so that its client comes back for the rest: what
/// all newcomers together hold has a bound for each.
pub(super) const PAGE: usize = 512 * 1_024;

/// A published event.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    /// As it is sent, with its position as id.
    pub(crate) bytes: Bytes,
    /// Who it is for: those who listen to any of these, or everyone if there are none.
    pub(crate) topics: Arc<[Arc<str>]>,
}

#[derive(Debug)]
pub(super) struct Ring {
    history: History,
    epoch: u64,
    /// Number of the newest event, whether it is kept or not.
    newest: u64,
    events: VecDeque<Recorded>,
    bytes: u64,
}

/// What somebody is shown.
#[derive(Debug)]
pub(super) struct Replay {
    /// Where it begins; `None` when that is not to be remembered, because something is missing.
    pub(super) from: Option<Position>,
    /// Something is missing.
    pub(super) gap: Option<Gap>,
    /// What is told of the gap is right at this position.
    pub(super) at: Position,
    pub(super) events: Vec<Bytes>,
    /// There is more than this.
    pub(super) is_page: bool,
    pub(super) is_resumed: bool,
}

/// From where on somebody asks to be shown what was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// They come for the first time.
    Newcomer,
    After(Position),
    /// After something that is no position.
    Unknown,
}

impl Ring {
    pub(super) fn new(history: History, epoch: u64) -> Self {
        Self { history, epoch, newest: 0, events: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn position(&self) -> Position {
        Position::new(self.epoch, self.newest)
    }

    pub(super) fn next(&self) -> Position {
        Position::new(self.epoch, self.newest + 1)
    }

    /// Becomes what was kept elsewhere.
    pub(super) fn load(&mut self, newest: Position, events: impl IntoIterator<Item = Recorded>) {
        (self.epoch, self.newest) = (newest.epoch(), newest.seq());
        self.events = events.into_iter().collect();
        self.bytes = self.events.iter().map(|event| event.bytes.len() as u64).sum();
        self.prune();
    }

    pub(super) fn append(&mut self, event: Recorded) {
        self.newest = event.seq;
        self.bytes += event.bytes.len() as u64;
        self.events.push_back(event);
        self.prune();
    }

    fn prune(&mut self) {
        while self.events.len() as u64 > self.history.max_events || self.bytes > self.history.max_bytes {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.bytes -= oldest.bytes.len() as u64;
        }
    }

    /// Forgets what is too old. When the next one is.
    pub(super) fn expire(&mut self, now: Timestamp) -> Option<Timestamp> {
        let age = self.history.max_age?;
        while self.events.front().is_some_and(|oldest| oldest.at + age <= now) {
            self.forget_oldest();
        }
        self.events.front().map(|oldest| oldest.at + age)
    }

    /// The number before the latest that a newcomer is shown.
    fn before_latest(&self, topics: &[Arc<str>]) -> u64 {
        let most = usize::try_from(self.history.replay).unwrap_or(usize::MAX);
        let latest = self.events.iter().rev().filter(|event| concerns(&event.topics, topics)).take(most);
        latest.last().map_or(self.newest, |first| first.seq - 1)
    }

    /// The number of the oldest event that is kept; the next one when none is.
    fn first(&self) -> u64 {
        self.events.front().map_or(self.newest + 1, |event| event.seq)
    }

    /// The position that is asked for, if it is one of this sequence.
    fn known(&self, after: Point) -> Option<Position> {
        let Point::After(at) = after else { return None };
        (at.epoch() == self.epoch && at.seq() <= self.newest).then_some(at)
    }

    /// Whether what is here will do for who asks for this, however much more is kept elsewhere.
    pub(super) fn suffices(&self, after: Point) -> bool {
        match self.known(after) {
            Some(at) => at.seq() + 1 >= self.first(),
            None => self.history.replay == 0,
        }
    }

    /// Whether everything behind a position is kept.
    pub(super) fn can_resume(&self, after: Point) -> bool {
        self.known(after).is_some_and(|at| at.seq() + 1 >= self.first())
    }

    /// What is behind a position, or the latest for who comes for the first time and who cannot go on.
    pub(super) fn replay(&self, after: Point, topics: &[Arc<str>], snapshot: Option<Position>) -> Replay {
        let (first, known) = (self.first(), self.known(after));
        let latest = self.before_latest(topics);
        // Behind a snapshot is what was published since.
        let shown = snapshot.filter(|p| p.epoch() == self.epoch).map(|p| p.seq().max(first - 1));
        let (from, gap) = match (after, known) {
            (_, Some(at)) if at.seq() + 1 >= first => (at.seq(), None),
            (_, Some(at)) => {
                let from = shown.unwrap_or(first - 1);
                (from, Some(Gap { lost: Some(from.saturating_sub(at.seq())) }))
            }
            (Point::Newcomer, None) => (shown.unwrap_or(latest), None),
            (_, None) => (shown.unwrap_or(latest), Some(Gap { lost: None })),
        };
        let at = Position::new(self.epoch, from);
        let mut replay = Replay {
            from: gap.is_none().then_some(at),
            gap,
            at,
            events: Vec::new(),
            is_page: false,
            is_resumed: known.is_some() && gap.is_none(),
        };
        let mut length = 0;
        let skipped = usize::try_from((from + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        for event in self.events.iter().skip(skipped).filter(|event| concerns(&event.topics, topics)) {
            length += event.bytes.len();
            if length > PAGE && !replay.events.is_empty() {
                replay.is_page = true;
                break;
            }
            replay.events.push(event.bytes.clone());
        }
        replay
    }
}

/// Whether an event for these topics is for who listens to those.
fn concerns(of: &[Arc<str>], listening: &[Arc<str>]) -> bool {
    of.is_empty() || of.iter().any(|topic| listening.contains(topic))
}
