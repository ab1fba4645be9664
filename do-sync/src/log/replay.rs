//! What somebody who comes is shown: all that they missed, or what is left of it and how much is not.

use super::{Log, Position, log::frame_of};
use do_core::{Error, Gap, Message, ObjectState, journal::Facts};
use std::ops::ControlFlow;

/// Where somebody is who comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked {
    /// They come for the first time.
    Fresh,
    /// They have all up to here; `None` when that could not be read.
    After(Option<Position>),
}

/// What somebody is to be shown. Right until the next entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    newest: Facts,
    /// What is shown is behind this number, without a hole.
    at: u64,
    pub(crate) gap: Option<Gap>,
    /// They know nothing, or not all: a snapshot helps.
    pub(crate) is_renewed: bool,
    /// How much there is to show.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Plan {
    pub(crate) fn at(&self) -> Position {
        Position::new(self.newest.epoch, self.at)
    }

    /// Shows nothing of what there is: somebody is told all of it otherwise.
    pub(crate) fn skip(&mut self) {
        if let Some(gap) = &mut self.gap {
            gap.lost = gap.lost.map(|lost| lost + (self.newest.seq - self.at));
        }
        (self.at, self.messages, self.bytes) = (self.newest.seq, 0, 0);
    }

    /// Whether nothing was logged since.
    pub(crate) fn is_of(&self, newest: Position) -> bool {
        self.newest.epoch == newest.epoch() && self.newest.seq == newest.seq()
    }
}

impl<S: ObjectState> Log<'_, S> {
    /// Finds out what to show. Whoever can go on is shown all behind their position; who comes for the first time or from
    /// another epoch, the latest messages; who was away for too long, all that is left, or, if they get a snapshot, the
    /// latest.
    ///
    /// Reads two rows, and some more where something is lost.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub(crate) fn plan(&self, asked: Asked, has_snapshot: bool) -> Result<Plan, Error> {
        let (newest, journal) = (self.newest()?, self.journal());
        let latest = newest.seq.saturating_sub(self.settings().replay);
        let (from, is_exact) = match asked {
            Asked::After(Some(p)) if p.epoch() == newest.epoch && p.seq() <= newest.seq => (p.seq(), true),
            _ => (latest, false),
        };
        let mut plan = Plan {
            newest,
            at: from,
            gap: matches!((asked, is_exact), (Asked::After(_), false)).then_some(Gap { lost: None }),
            is_renewed: !is_exact,
            messages: 0,
            bytes: 0,
        };
        if from == newest.seq {
            return Ok(plan);
        }
        let mut first = journal.first_from(from + 1)?;
        if !first.is_some_and(|first| first.seq == from + 1 && journal.is_within(&first, &newest)) {
            plan.at = journal.floor(&newest)?.saturating_sub(1).max(from);
            if is_exact {
                plan.is_renewed = true;
                if has_snapshot {
                    plan.at = plan.at.max(latest);
                }
                plan.gap = Some(Gap { lost: Some(plan.at - from) });
            }
            first = if plan.at == newest.seq { None } else { journal.first_from(plan.at + 1)? };
        }
        if let Some(first) = first {
            plan.messages = newest.seq - plan.at;
            plan.bytes = (newest.total - first.total).saturating_add(first.bytes);
        }
        Ok(plan)
    }

    /// The frames of a plan, as many as fit `bytes` and `messages`.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub(crate) fn frames(&self, plan: &Plan, bytes: u64, messages: u64) -> Result<Vec<Message>, Error> {
        let (mut frames, mut left) = (Vec::new(), bytes);
        self.journal().after(plan.at, plan.messages.min(messages), |kept| {
            let frame = frame_of(kept)?;
            match left.checked_sub(frame.len() as u64) {
                Some(rest) => left = rest,
                None => return Ok(ControlFlow::Break(())),
            }
            frames.push(frame);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(frames)
    }
}
