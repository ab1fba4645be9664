//! The rules of the client as a state machine without network, time and chance of its own: it is told what happened and
//! when, and says what to do. The [driver](super::driver) does it.

use super::{
    backoff::Backoff,
    cause::{Cause, Verdict},
    event::{Connected, Event, Gap},
    frame::{Frame, Hello, Sequenced},
};
use crate::{Position, codes};
use do_core::Message;
use std::{collections::VecDeque, ops::RangeInclusive, time::Duration};

/// What is to be done. Times are since the client began.
#[derive(Debug)]
pub(super) enum Command {
    /// Open a connection that continues here.
    Connect { after: Option<Position> },
    /// Write a text that is not the application's.
    Text(String),
    /// Tell the room that so many bytes more were read.
    Acknowledge(u64),
    /// Write a Ping of the protocol with this number.
    Ping(u64),
    /// Write a Close.
    Close(u16),
    /// Let go of the connection, or of the attempt.
    Abort,
    /// The room takes messages of so many bytes.
    Longest(usize),
    /// Tell the application.
    Emit(Event),
    /// Refuse what is still to be sent, and tell the application the end.
    Stop { cause: Cause, unconfirmed: Option<RangeInclusive<u64>> },
}

/// What can be set.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) backoff: Backoff,
    /// From the beginning of an attempt to the room's hello.
    pub(super) connect_within: Duration,
    /// When the server is asked whether it is there.
    pub(super) ping_after: Duration,
    pub(super) pong_within: Duration,
    /// How long a Close waits for its answer.
    pub(super) close_within: Duration,
    /// Attempts in a row without a hello.
    pub(super) give_up: Option<u32>,
}

#[derive(Debug)]
enum State {
    Waiting {
        until: Duration,
    },
    Connecting {
        until: Duration,
    },
    /// The connection is open, the hello has not come.
    Greeting {
        until: Duration,
    },
    Open(Session),
    /// Our Close is on its way.
    Closing {
        until: Duration,
        code: u16,
        cause: Cause,
    },
    Stopped,
}

#[derive(Debug)]
struct Session {
    opened: Duration,
    heard: Duration,
    /// When the answer to a ping is due.
    pong_by: Option<Duration>,
    /// Answers to text pings that are still to come, which are not the application's.
    pongs: u32,
    ping: Option<(String, String)>,
    credit: Option<u64>,
    /// Bytes since the last acknowledgement.
    unacknowledged: u64,
    epoch: u64,
    /// The number of the last message of this connection.
    last: u64,
    /// Up to here the application has them from an earlier connection.
    known: u64,
    /// It goes on from where the client was, or is the first: what it brings is progress.
    continues: bool,
    /// It brings a part of what was missed, and is no place to say anything: the room closes it.
    is_part: bool,
    /// When a part last went on.
    moved: Duration,
}

#[derive(Debug)]
pub(super) struct Core {
    config: Config,
    rng: fastrand::Rng,
    state: State,
    commands: VecDeque<Command>,
    position: Option<Position>,
    /// Failures in a row, for the back-off.
    failures: u32,
    /// Attempts in a row without a hello.
    unopened: u32,
    /// Whether this connection has brought the application what it missed.
    progress: bool,
    /// It came back at once, and no connection has lasted since.
    hurried: bool,
    /// How long this connection was open before it closed.
    lasted: Duration,
    /// The last receipt that was written, to any connection.
    written: u64,
    /// The last one that the server is known to have, or that was reported.
    confirmed: u64,
    /// A Ping that confirms up to here is on its way.
    confirming: Option<u64>,
    /// The application wants the end: by this time at the latest the Close is sent.
    asked: Option<Duration>,
}

impl Session {
    /// When a part that does not go on is given up.
    fn part_until(&self, config: &Config) -> Option<Duration> {
        self.is_part.then(|| self.moved.saturating_add(config.connect_within))
    }
}

impl Core {
    pub(super) fn new(config: Config, after: Option<Position>, rng: fastrand::Rng) -> Self {
        Self {
            config,
            rng,
            state: State::Waiting { until: Duration::ZERO },
            commands: VecDeque::new(),
            position: after,
            failures: 0,
            unopened: 0,
            progress: false,
            hurried: false,
            lasted: Duration::ZERO,
            written: 0,
            confirmed: 0,
            confirming: None,
            asked: None,
        }
    }

    /// What is to be done next. To be asked after each input until there is nothing.
    pub(super) fn command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped)
    }

    /// Whether messages of the application may be written now.
    pub(super) fn may_write(&self) -> bool {
        matches!(self.state, State::Open(Session { is_part: false, .. }))
    }

    /// Whether the connection closes as soon as all is written.
    pub(super) fn is_draining(&self) -> bool {
        self.asked.is_some() && self.may_write()
    }

    /// Whether nothing that comes matters any more but the Close.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    pub(super) fn is_connecting(&self) -> bool {
        matches!(self.state, State::Connecting { .. })
    }

    #[cfg(test)]
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// When [`tick`](Self::tick) is to be called.
    pub(super) fn deadline(&self) -> Option<Duration> {
        match &self.state {
            State::Waiting { until }
            | State::Connecting { until }
            | State::Greeting { until }
            | State::Closing { until, .. } => Some(*until),
            State::Open(session) => {
                let due = session.pong_by.unwrap_or(session.heard.saturating_add(self.config.ping_after));
                let part = session.part_until(&self.config);
                [self.asked, part].into_iter().flatten().chain([due]).min()
            }
            State::Stopped => None,
        }
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Duration) {
        if self.deadline().is_none_or(|due| now < due) {
            return;
        }
        match &mut self.state {
            State::Waiting { .. } => {
                self.state = State::Connecting { until: now.saturating_add(self.config.connect_within) };
                (self.progress, self.lasted, self.confirming) = (false, Duration::ZERO, None);
                self.commands.push_back(Command::Connect { after: self.position });
            }
            State::Connecting { .. } => {
                self.commands.push_back(Command::Abort);
                self.end(now, Cause::Unreachable("no answer in time".to_owned()), None);
            }
            State::Greeting { .. } => {
                self.commands.push_back(Command::Abort);
                self.end(now, Cause::Silent, None);
            }
            State::Closing { cause, .. } => {
                let cause = cause.clone();
                self.commands.push_back(Command::Abort);
                self.end(now, cause, None);
            }
            State::Open(_) if self.asked.is_some_and(|by| by <= now) => {
                self.close(now, CLOSE_NORMAL, Cause::Asked);
            }
            State::Open(session) if session.part_until(&self.config).is_some_and(|until| until <= now) => {
                self.commands.push_back(Command::Abort);
                self.end(now, Cause::Silent, None);
            }
            State::Open(session) if session.pong_by.is_some() => {
                self.lasted = session.heard.saturating_sub(session.opened);
                self.commands.push_back(Command::Abort);
                self.end(now, Cause::Silent, None);
            }
            State::Open(session) => {
                session.pong_by = Some(now.saturating_add(self.config.pong_within));
                self.commands.push_back(match &session.ping {
                    Some((ping, _)) => {
                        session.pongs = session.pongs.saturating_add(1);
                        Command::Text(ping.clone())
                    }
                    None => Command::Ping(self.written),
                });
            }
            State::Stopped => {}
        }
    }

    /// The handshake is done.
    pub(super) fn opened(&mut self) {
        if let State::Connecting { until } = self.state {
            self.state = State::Greeting { until };
        }
    }

    /// There is no connection, for this reason.
    pub(super) fn failed(&mut self, now: Duration, cause: Cause, retry_after: Option<Duration>) {
        if matches!(self.state, State::Connecting { .. }) {
            self.end(now, cause, retry_after);
        }
    }

    /// The connection ended: with the peer's Close, or without one (1006); or with what is wrong with what it sent.
    pub(super) fn ended(&mut self, now: Duration, cause: Cause) {
        match &self.state {
            State::Greeting { .. } => self.end(now, cause, None),
            State::Open(session) => {
                self.lasted = now.saturating_sub(session.opened);
                self.end(now, cause, None);
            }
            State::Closing { code, cause: ours, .. } => {
                // It answered our Close, and had read all that was before it.
                if matches!(&cause, Cause::Closed { code: theirs, .. } if theirs == code) {
                    self.confirmed = self.written;
                }
                let ours = ours.clone();
                self.end(now, ours, None);
            }
            State::Waiting { .. } | State::Connecting { .. } | State::Stopped => {}
        }
    }

    /// The application wants the end: after what waits, if there is a connection.
    pub(super) fn close_asked(&mut self, now: Duration) {
        let by = *self.asked.get_or_insert(now.saturating_add(self.config.close_within));
        match &mut self.state {
            // It has its own end, which is the application's now.
            State::Closing { until, cause, .. } => (*until, *cause) = (by.min(*until), Cause::Asked),
            State::Greeting { .. } | State::Open(Session { is_part: true, .. }) => {
                self.close(now, CLOSE_NORMAL, Cause::Asked);
            }
            State::Waiting { .. } | State::Connecting { .. } => {
                self.commands.push_back(Command::Abort);
                self.end(now, Cause::Asked, None);
            }
            State::Open(_) | State::Stopped => {}
        }
    }

    /// Nothing waits to be written.
    pub(super) fn drained(&mut self, now: Duration) {
        if self.is_draining() {
            self.close(now, CLOSE_NORMAL, Cause::Asked);
        }
    }

    /// A message of the application was written.
    pub(super) fn wrote(&mut self, receipt: u64) {
        self.written = receipt;
        self.confirm();
    }

    /// A message of the application will never be written.
    pub(super) fn refused(&mut self, receipt: u64, message: Message, limit: usize) {
        if self.confirmed == self.written {
            // Nothing is doubtful, and so it is not among what is.
            (self.confirmed, self.written) = (receipt, receipt);
        }
        self.emit(Event::Refused { receipt, message, limit });
    }

    /// The answer to a Ping came: all that was written before it has arrived.
    pub(super) fn ponged(&mut self, now: Duration, payload: &[u8]) {
        self.heard(now);
        let Ok(number) = payload.try_into().map(u64::from_be_bytes) else { return };
        if matches!(self.state, State::Open(_) | State::Closing { .. }) && number <= self.written {
            self.confirmed = self.confirmed.max(number);
            // A server that sends more Pongs than it was asked for is not asked more often.
            self.confirming = self.confirming.filter(|asked| *asked > number);
            self.confirm();
        }
    }

    /// One Ping at a time, for all that was written meanwhile.
    fn confirm(&mut self) {
        if self.may_write() && self.written > self.confirmed && self.confirming.is_none() {
            self.confirming = Some(self.written);
            self.commands.push_back(Command::Ping(self.written));
        }
    }

    /// For a while nobody looked whether the server is there, because the application did not take its events.
    pub(super) fn looks_again(&mut self, now: Duration) {
        self.heard(now);
        match &mut self.state {
            State::Greeting { until } => *until = now.saturating_add(self.config.pong_within).max(*until),
            State::Open(session) => session.moved = now,
            _ => {}
        }
    }

    /// The server is there.
    pub(super) fn heard(&mut self, now: Duration) {
        if let State::Open(session) = &mut self.state {
            (session.heard, session.pong_by) = (now, None);
        }
    }

    /// A message came.
    pub(super) fn received(&mut self, now: Duration, message: Message) {
        self.heard(now);
        let bytes = message.len() as u64;
        match &mut self.state {
            State::Greeting { .. } => match Frame::of(message) {
                Frame::Hello(hello) => {
                    self.greet(now, *hello);
                    self.acknowledge(bytes);
                }
                Frame::Broken(why) => self.close(now, CLOSE_PROTOCOL, Cause::Protocol(why)),
                // Whoever sends before the hello sends something of its own.
                Frame::Raw(message) => self.emit(Event::Raw(message)),
                Frame::Ephemeral(data) => self.emit(Event::Ephemeral(data)),
                Frame::Unknown => {}
                Frame::Sequenced { .. } => self.close(now, codes::RESYNC, Cause::Hole),
            },
            State::Open(session) => {
                if session.pongs > 0
                    && session.ping.as_ref().is_some_and(|(_, pong)| message.as_text() == Some(pong))
                {
                    session.pongs -= 1;
                    return;
                }
                self.acknowledge(bytes);
                match Frame::of(message) {
                    Frame::Sequenced { seq, at, what } => self.sequenced(now, seq, at, what),
                    Frame::Ephemeral(data) => self.emit(Event::Ephemeral(data)),
                    Frame::Raw(message) => self.emit(Event::Raw(message)),
                    Frame::Unknown => {}
                    Frame::Hello(_) | Frame::Broken(_) => {
                        self.close(now, CLOSE_PROTOCOL, Cause::Protocol("a second hello".to_owned()));
                    }
                }
            }
            State::Waiting { .. } | State::Connecting { .. } | State::Closing { .. } | State::Stopped => {}
        }
    }

    fn acknowledge(&mut self, bytes: u64) {
        let State::Open(session) = &mut self.state else { return };
        let Some(credit) = session.credit else { return };
        session.unacknowledged = session.unacknowledged.saturating_add(bytes);
        if session.unacknowledged >= credit / 4 {
            let bytes = std::mem::take(&mut session.unacknowledged);
            self.commands.push_back(Command::Acknowledge(bytes));
        }
    }

    fn greet(&mut self, now: Duration, hello: Hello) {
        let Ok(at) = hello.at.parse::<Position>() else {
            return self.close(now, CLOSE_PROTOCOL, Cause::Protocol("its hello has no position".to_owned()));
        };
        let gap = self.position.and_then(|after| match &hello.gap {
            Some(gap) => Some(Gap { after, lost: gap.lost }),
            // It should have said so.
            None if after.epoch() != at.epoch() => Some(Gap { after, lost: None }),
            None if at.seq() > after.seq() => Some(Gap { after, lost: Some(at.seq() - after.seq()) }),
            None => None,
        });
        let resumed = self.position.filter(|_| gap.is_none());
        if resumed.is_none() {
            self.position = Some(at);
        }
        self.unopened = 0;
        self.state = State::Open(Session {
            opened: now,
            heard: now,
            pong_by: None,
            pongs: 0,
            ping: hello.ping,
            credit: hello.credit,
            unacknowledged: 0,
            epoch: at.epoch(),
            last: at.seq(),
            known: resumed.map_or(0, Position::seq),
            continues: gap.is_none(),
            is_part: hello.more,
            moved: now,
        });
        if let Some(bytes) = hello.limits.and_then(|limits| limits.bytes) {
            self.commands.push_back(Command::Longest(bytes));
        }
        self.emit(Event::Connected(Connected {
            resumed: resumed.is_some(),
            gap,
            at,
            replay: hello.replay,
            more: hello.more,
            member: hello.member,
            socket: hello.socket,
            members: hello.members,
            count: hello.count,
            snapshot: hello.snapshot,
        }));
    }

    fn sequenced(&mut self, now: Duration, seq: u64, at: do_core::Timestamp, what: Sequenced) {
        let State::Open(session) = &mut self.state else { return };
        if session.last.checked_add(1) != Some(seq) {
            return self.close(now, codes::RESYNC, Cause::Hole);
        }
        (session.last, session.moved) = (seq, now);
        if seq <= session.known {
            return; // again, because the room went further back than it was asked to
        }
        let position = Position::new(session.epoch, seq);
        self.position = Some(position);
        self.progress |= session.continues;
        self.emit(match what {
            Sequenced::Message { from, data } => Event::Message { position, at, from, data },
            Sequenced::Binary { from, data } => Event::Binary { position, at, from, data },
            Sequenced::Joined(member) => Event::Joined { position, at, member },
            Sequenced::Updated(member) => Event::Updated { position, at, member },
            Sequenced::Left(member) => Event::Left { position, at, member },
        });
    }

    fn emit(&mut self, event: Event) {
        self.commands.push_back(Command::Emit(event));
    }

    fn close(&mut self, now: Duration, code: u16, cause: Cause) {
        if let State::Open(session) = &self.state {
            self.lasted = now.saturating_sub(session.opened);
        }
        self.commands.push_back(Command::Close(code));
        let until = now.saturating_add(self.config.close_within);
        self.state = State::Closing { until, code, cause };
    }

    /// This connection, or attempt, is over.
    fn end(&mut self, now: Duration, cause: Cause, retry_after: Option<Duration>) {
        let greeted = !matches!(self.state, State::Connecting { .. } | State::Greeting { .. });
        let unconfirmed = (self.written > self.confirmed).then(|| self.confirmed + 1..=self.written);
        self.confirmed = self.written;
        if !greeted {
            self.unopened = self.unopened.saturating_add(1);
        }
        let verdict = cause.verdict();
        let gives_up = self.config.give_up.is_some_and(|most| self.unopened >= most);
        if self.asked.is_some() || verdict == Verdict::Stop || gives_up {
            let cause = if self.asked.is_some() { Cause::Asked } else { cause };
            self.state = State::Stopped;
            return self.commands.push_back(Command::Stop { cause, unconfirmed });
        }
        if self.lasted >= self.config.backoff.stable {
            (self.failures, self.hurried) = (0, false);
        }
        // Without progress the next attempt would end in the same way, again and again. What comes behind one gap after
        // the other is none.
        let retry_in = if verdict == Verdict::AtOnce && (self.progress || !self.hurried) {
            self.hurried = true;
            Duration::ZERO
        } else {
            self.failures = self.failures.saturating_add(1);
            self.config.backoff.wait(self.failures - 1, retry_after, &mut self.rng)
        };
        self.state = State::Waiting { until: now.saturating_add(retry_in) };
        self.emit(Event::Disconnected { cause, retry_in, unconfirmed });
    }
}

const CLOSE_NORMAL: u16 = 1_000;

const CLOSE_PROTOCOL: u16 = 1_002;

#[cfg(test)]
mod tests;
