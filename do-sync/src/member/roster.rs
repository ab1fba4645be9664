//! Who is there, in a table, by which `joined` and `left` are said exactly once.
//!
//! Every event that may change it, of whatever kind and however often it comes, ends in one question: has the member an
//! open socket, and is there a row? What follows is written to the table and to the log in one transaction, so that
//! neither can be without the other, and asking again changes nothing.

use super::{
    Admission, Member, Memory, OnDuplicate, Refused,
    mark::{Attached, Mark, close},
    store::{Row, Store},
};
use crate::{
    Room, codes,
    log::{Entry, Logged},
    outbound::{Kind, Outgoing},
    room::SEPARATOR,
};
use do_core::{
    Accept, AlarmScheduler, CloseCode, Error, ErrorKind, Message, ObjectState, Socket, SocketOf, Tag,
    Timestamp, base36::Base36, limits,
};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, fmt, time::Duration};

/// The members of one room.
pub(crate) struct Roster<'a, S: ObjectState> {
    room: &'a Room<S>,
}

impl<S: ObjectState> Clone for Roster<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ObjectState> Copy for Roster<'_, S> {}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Roster<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Roster").field(&self.room).finish()
    }
}

/// What was written in one transaction, and is to be remembered and said when it has succeeded.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Everybody was looked at.
    whole: bool,
    rows: Vec<(String, Option<Row>)>,
    news: Vec<News>,
    logged: Vec<(String, Logged)>,
}

/// What is to be logged of a member.
#[derive(Debug)]
struct News {
    member: String,
    what: What,
}

#[derive(Debug)]
enum What {
    Joined(Option<Box<RawValue>>),
    Updated(Box<RawValue>),
    Left,
}

impl News {
    fn entry(&self) -> Entry<'_> {
        let member = self.member.as_str();
        match &self.what {
            What::Joined(data) => Entry::Joined { member, data: data.as_deref() },
            What::Updated(data) => Entry::Updated { member, data },
            What::Left => Entry::Left { member },
        }
    }
}

impl Changes {
    fn tell(&mut self, member: &str, what: What) {
        self.news.push(News { member: member.to_owned(), what });
    }

    /// What was logged last of a member.
    pub(super) fn of(&self, member: &str) -> Option<&Logged> {
        self.logged.iter().rev().find(|(id, _)| id == member).map(|(_, logged)| logged)
    }
}

/// What is to be done about a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Join,
    /// They are waited for no longer, because they came.
    Return,
    Await(Timestamp),
    Leave,
}

/// What a member's row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// There is none.
    Absent,
    /// They are there, as far as is known with a socket.
    There,
    /// They are waited for, until then.
    Awaited(Timestamp),
}

impl From<Option<&Row>> for Standing {
    fn from(row: Option<&Row>) -> Self {
        match row.map(|row| row.gone) {
            None => Self::Absent,
            Some(None) => Self::There,
            Some(Some(until)) => Self::Awaited(until),
        }
    }
}

/// When a grace is over, at most as late as an alarm can come.
fn end(grace: Duration, now: Timestamp) -> Timestamp {
    (now + grace).min(Timestamp::from_millis(limits::ALARM_MAX_MS))
}

fn step(standing: Standing, open: bool, grace: Duration, now: Timestamp) -> Step {
    use Standing::{Absent, Awaited, There};
    match (standing, open) {
        (Absent, false) | (There, true) => Step::Nothing,
        (Absent, true) => Step::Join,
        (Awaited(_), true) => Step::Return,
        (There | Awaited(_), false) if grace.is_zero() => Step::Leave,
        (There, false) => Step::Await(end(grace, now)),
        (Awaited(until), false) if until <= now => Step::Leave,
        // The clock went back, or the grace became shorter: nobody is waited for longer than it says.
        (Awaited(until), false) if until > end(grace, now) => Step::Await(end(grace, now)),
        (Awaited(_), false) => Step::Nothing,
    }
}

impl<'a, S: ObjectState> Roster<'a, S> {
    pub(super) fn new(room: &'a Room<S>) -> Self {
        Self { room }
    }

    fn memory(&self) -> &'a Memory {
        &self.room.inner().members
    }

    fn store(&self) -> Store<'a, S::Sql> {
        Store::new(self.room.state().sql(), self.room.key())
    }

    fn grace(&self) -> Duration {
        self.room.inner().settings.members.grace
    }

    /// Whether a member may come in, and with what their socket is to be accepted. Changes nothing but what is due
    /// anyhow: who left without an event is said to have left.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when tags or attachment become too long, [`ErrorKind::Invalid`] when the room has a grace and
    /// no alarm; faults of the storage.
    pub(crate) fn admit(&self, member: &Member) -> Result<Result<Admission<S>, Refused>, Error> {
        let rules = &self.room.inner().settings.members;
        if !rules.grace.is_zero() && self.room.inner().alarm.is_none() {
            let message = "a grace for members needs an alarm to end it: give the room one";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        self.change(None, |_| Ok(()))?;
        let id = member.id();
        let open = self.room.sockets_of(id);
        let known = self.memory().row(id, |row| row.data.clone());
        if known.is_none()
            && let Some(most) = rules.max_members
            && self.memory().all(BTreeMap::len).unwrap_or(0) >= most
        {
            return Ok(Err(Refused::Members));
        }
        let replaced = match rules.on_duplicate {
            OnDuplicate::Replace => open,
            OnDuplicate::Reject => {
                let (dead, alive) = open.into_iter().partition::<Vec<_>, _>(|socket| self.is_silent(socket));
                if !alive.is_empty() {
                    return Ok(Err(Refused::Duplicate));
                }
                dead
            }
            OnDuplicate::Allow => {
                if rules.max_sockets.is_some_and(|most| open.len() >= most) {
                    return Ok(Err(Refused::Sockets));
                }
                Vec::new()
            }
        };
        if let (OnDuplicate::Allow, Some(data)) = (rules.on_duplicate, &member.data) {
            self.room.remarked(id, data)?; // their other sockets must be able to carry it too
        }
        let socket = Base36(self.room.state().random()).to_string();
        let data = member.data.clone().or(known.flatten());
        let accept = self.marked(member.accept.clone(), Some(id), &socket, data)?;
        let accept = accept.tag(self.room.member_tag(id)?)?;
        Ok(Ok(Admission { accept, socket, member: id.to_owned(), data: member.data.clone(), replaced }))
    }

    /// With what the socket of somebody who only follows is to be accepted, and its id.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when tags or attachment become too long.
    pub(crate) fn follower(&self, accept: Accept) -> Result<(Accept, String), Error> {
        let socket = Base36(self.room.state().random()).to_string();
        let accept = self.marked(accept, None, &socket, None)?;
        Ok((accept.tag(self.room.follower_tag()?)?, socket))
    }

    /// Whose a socket is, beside what the application attaches.
    fn marked(
        &self,
        accept: Accept,
        member: Option<&str>,
        socket: &str,
        data: Option<Box<RawValue>>,
    ) -> Result<Accept, Error> {
        self.room.check_tags(&accept)?;
        let app = accept.clone().into_parts().1;
        let app = app.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mark = Mark {
            room: self.room.key().to_owned(),
            m: member.map(str::to_owned),
            c: socket.to_owned(),
            t: self.room.state().now(),
            d: data,
            x: false,
        };
        accept.attach(&Attached { mark, app }.write()?)?.tag(self.room.entered_tag()?)
    }

    /// Whether nothing came from the client for so long that it counts as dead.
    fn is_silent(&self, socket: &SocketOf<S>) -> bool {
        let Some(most) = self.room.inner().settings.members.silent else { return false };
        let entered = self.room.mark_of(socket).map(|attached| attached.mark.t);
        let heard = socket.auto_response_at().max(entered);
        heard.is_some_and(|heard| heard.until(self.room.state().now()) >= most)
    }

    /// The socket was accepted as the admission says: what follows from it (`joined`, if the member was not there) is
    /// logged and said to all others.
    ///
    /// # Errors
    /// Faults of the storage. The socket is closed then, and nothing was logged of it.
    pub(crate) fn entered(&self, admission: &Admission<S>, socket: &SocketOf<S>) -> Result<(), Error> {
        let id = admission.member.as_str();
        let data = admission.data.as_deref();
        let entered = self.change(Some(socket), |changes| {
            self.settle(id, changes)?;
            data.map_or(Ok(()), |data| self.write_data(id, data, changes).map(drop))
        });
        let marked = entered.and_then(|_| {
            let marks = data.map(|data| self.room.remarked(id, data)).transpose()?.unwrap_or_default();
            marks.iter().try_for_each(|(socket, attached)| socket.set_attachment(attached))
        });
        marked.inspect_err(|_| self.abandon(socket))
    }

    /// The newcomer is in and was told: those whose place it takes close. Not before, because they do not come back.
    pub(crate) fn replace(admission: &Admission<S>) {
        for old in &admission.replaced {
            close(old, codes::REPLACED, "another connection took over");
        }
    }

    /// Takes a socket back that could not be told what it needs to know: it closes, and if it was logged, the next who
    /// uses the room says that it left.
    pub(crate) fn abandon(&self, socket: &SocketOf<S>) {
        self.room.tell_left(socket, false);
        close(socket, CloseCode::INTERNAL.get(), "entering failed");
        self.memory().forget();
    }

    /// Says who is waited for no longer, and when that is so of the next.
    ///
    /// # Errors
    /// Faults of the storage.
    pub(crate) fn on_alarm(&self) -> Result<Option<Timestamp>, Error> {
        self.change(None, |_| Ok(()))?;
        Ok(self.memory().next())
    }

    /// Sees to it that an alarm comes for those who are waited for. After everything that may have changed who is there.
    ///
    /// # Errors
    /// Faults of the alarm; the next call tries again.
    pub(crate) async fn arm(&self) -> Result<(), Error> {
        let Some(alarm) = &self.room.inner().alarm else { return Ok(()) };
        if !self.memory().unarmed().get() {
            return Ok(());
        }
        if let Some(next) = self.memory().next() {
            alarm.set_earlier(next).await?;
        }
        // Whoever is waited for since is so until later.
        self.memory().unarmed().set(false);
        Ok(())
    }

    /// Whether a member is there though no socket of theirs is open.
    pub(super) fn is_awaited(&self, member: &str) -> Result<bool, Error> {
        let standing = match self.memory().row(member, |row| Standing::from(Some(row))) {
            Some(standing) => standing,
            None if self.memory().is_known() => Standing::Absent,
            None => self.store().row(member)?.as_ref().into(),
        };
        Ok(self.waits(standing))
    }

    /// Whether somebody without a socket is there.
    fn waits(&self, standing: Standing) -> bool {
        match step(standing, false, self.grace(), self.room.state().now()) {
            Step::Await(_) => true,
            Step::Nothing => standing != Standing::Absent,
            Step::Join | Step::Return | Step::Leave => false,
        }
    }

    /// Shows those who are there, in the order of their ids, without writing that anybody left.
    pub(crate) fn visit(&self, mut see: impl FnMut(&str, Option<&RawValue>)) -> Result<(), Error> {
        if self.is_each_open() {
            self.memory().all(|there| there.iter().for_each(|(id, row)| see(id, row.data.as_deref())));
            return Ok(());
        }
        let open: BTreeMap<String, Mark> = self.marks().map(|(_, id, mark)| (id, mark)).collect();
        let mut each = |there: &BTreeMap<String, Row>| {
            let here = |id: &str, row: &Row| open.contains_key(id) || self.waits(Some(row).into());
            for (id, row) in there.iter().filter(|(id, row)| here(id, row)) {
                see(id, row.data.as_deref());
            }
        };
        if self.memory().all(&mut each).is_none() {
            let mut there: BTreeMap<String, Row> = self.store().all()?.into_iter().collect();
            for (id, mark) in &open {
                there.entry(id.clone()).or_insert_with(|| Row { data: mark.d.clone(), gone: None });
            }
            each(&there);
        }
        Ok(())
    }

    /// Whether all who are there are waited for or have an open socket, where that is known by counting: so that whoever
    /// comes into a large room does not make it read what each socket carries.
    fn is_each_open(&self) -> bool {
        if self.room.inner().settings.members.on_duplicate == OnDuplicate::Allow {
            return false;
        }
        let awaited = self.memory().awaited(self.room.state().now());
        let there = self.memory().all(BTreeMap::len);
        let open = || self.room.entered().len().saturating_sub(self.room.followers().len());
        awaited.zip(there).is_some_and(|(awaited, there)| open() + awaited == there)
    }

    /// The open sockets of members, with whose they are and their marks.
    fn marks(&self) -> impl Iterator<Item = (SocketOf<S>, String, Mark)> + use<'a, S> {
        let room = self.room;
        room.entered().into_iter().filter_map(move |socket| {
            let mut mark = room.mark_of(&socket).filter(|attached| !attached.mark.x)?.mark;
            Some((socket, mark.m.take()?, mark))
        })
    }

    /// Runs `body` and what is due anyhow in one transaction; then remembers what was written, and says what was logged to
    /// all who entered but one.
    pub(super) fn change(
        &self,
        except: Option<&SocketOf<S>>,
        body: impl FnOnce(&mut Changes) -> Result<(), Error>,
    ) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        let (memory, log) = (self.memory(), self.room.log());
        // What is written of it is told to nobody before it is all there.
        let written = log.journal().transaction(|| {
            self.catch_up(&mut changes)?;
            body(&mut changes)?;
            let logged = log.append_all(changes.news.iter().map(News::entry))?;
            let members = changes.news.drain(..).map(|news| news.member);
            changes.logged = members.zip(logged).collect();
            Ok(())
        });
        // What was to be written, and could not be, is found out again by the next.
        written.map_err(Error::from).inspect_err(|_| memory.forget())?;
        if changes.whole {
            memory.load();
        }
        for (id, row) in changes.rows.drain(..) {
            memory.set(id, row);
        }
        if !changes.logged.is_empty() {
            let sockets = self.room.entered();
            for (_, Logged { frame, .. }) in &changes.logged {
                self.say(frame, &sockets, except);
            }
        }
        Ok(changes)
    }

    fn say(&self, frame: &Message, sockets: &[SocketOf<S>], except: Option<&SocketOf<S>>) {
        for socket in sockets.iter().filter(|socket| Some(*socket) != except) {
            // A socket that is closed meanwhile, or takes no more, resumes.
            self.room.deliver(socket, Outgoing { message: frame, key: None, kind: Kind::Sequenced });
        }
    }

    /// In a fresh instance looks at everybody: connections may have ended without an event (rules B7, D25). Later, only at
    /// those who are waited for no longer.
    fn catch_up(&self, changes: &mut Changes) -> Result<(), Error> {
        if self.memory().is_known() {
            let due = self.memory().due(self.room.state().now());
            return due.iter().try_for_each(|id| self.settle(id, changes));
        }
        changes.whole = true;
        let rows = self.store().all()?.into_iter();
        let mut all: BTreeMap<String, (Option<Row>, Vec<SocketOf<S>>)> =
            rows.map(|(id, row)| (id, (Some(row), Vec::new()))).collect();
        for (socket, id, _) in self.marks() {
            all.entry(id).or_default().1.push(socket);
        }
        all.into_iter().try_for_each(|(id, (row, open))| self.settle_row(id, row, &open, changes))
    }

    /// Brings a member's row and the log to what their sockets say.
    pub(super) fn settle(&self, id: &str, changes: &mut Changes) -> Result<(), Error> {
        self.settle_row(id.to_owned(), self.store().row(id)?, &self.room.sockets_of(id), changes)
    }

    fn settle_row(
        &self,
        id: String,
        mut row: Option<Row>,
        open: &[SocketOf<S>],
        changes: &mut Changes,
    ) -> Result<(), Error> {
        let step = step(row.as_ref().into(), !open.is_empty(), self.grace(), self.room.state().now());
        match step {
            Step::Nothing => {}
            Step::Join => {
                let latest =
                    open.iter().filter_map(|socket| self.room.mark_of(socket)).max_by_key(|a| a.mark.t);
                let data = latest.and_then(|attached| attached.mark.d);
                changes.tell(&id, What::Joined(data.clone()));
                row = Some(Row { data, gone: None });
            }
            Step::Return => row = row.map(|row| Row { gone: None, ..row }),
            Step::Await(until) => row = row.map(|row| Row { gone: Some(until), ..row }),
            Step::Leave => {
                changes.tell(&id, What::Left);
                row = None;
            }
        }
        match &row {
            _ if step == Step::Nothing => {}
            Some(row) => self.store().put(&id, row)?,
            None => self.store().delete(&id)?,
        }
        changes.rows.push((id, row));
        Ok(())
    }

    /// Ends the presence of a member at once, whether they are waited for or not.
    pub(super) fn end(&self, id: &str, changes: &mut Changes) -> Result<(), Error> {
        if self.store().row(id)?.is_none() {
            return Ok(());
        }
        changes.tell(id, What::Left);
        self.store().delete(id)?;
        changes.rows.push((id.to_owned(), None));
        Ok(())
    }

    /// Writes what others see of a member, if that is something else now. Whether it is.
    pub(super) fn write_data(&self, id: &str, data: &RawValue, changes: &mut Changes) -> Result<bool, Error> {
        let Some(row) = self.store().row(id)? else { return Ok(false) };
        if row.data.as_deref().is_some_and(|old| old.get() == data.get()) {
            return Ok(false);
        }
        changes.tell(id, What::Updated(data.to_owned()));
        let row = Row { data: Some(data.to_owned()), ..row };
        self.store().put(id, &row)?;
        changes.rows.push((id.to_owned(), Some(row)));
        Ok(true)
    }
}

impl<S: ObjectState> Room<S> {
    /// The tag of all sockets that entered.
    pub(crate) fn entered_tag(&self) -> Result<Tag, Error> {
        Tag::new(format!("{}{SEPARATOR}", self.key()))
    }

    /// The tag of those who only follow. No member's is the same, because ids are not empty and have no separator.
    pub(crate) fn follower_tag(&self) -> Result<Tag, Error> {
        Tag::new(format!("{}{SEPARATOR}{SEPARATOR}", self.key()))
    }

    /// The tag of a member's sockets: they are found without looking at all of the room.
    pub(crate) fn member_tag(&self, member: &str) -> Result<Tag, Error> {
        Tag::new(format!("{}{SEPARATOR}{member}", self.key()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_about_a_member() {
        let at = Timestamp::from_millis;
        let (grace, now) = (Duration::from_millis(50), at(1_000));
        let step = |standing, open| step(standing, open, grace, now);
        assert_eq!(step(Standing::Absent, false), Step::Nothing);
        assert_eq!(step(Standing::Absent, true), Step::Join);
        assert_eq!(step(Standing::There, true), Step::Nothing);
        assert_eq!(step(Standing::There, false), Step::Await(at(1_050)));
        assert_eq!(step(Standing::Awaited(at(1_001)), false), Step::Nothing);
        assert_eq!(step(Standing::Awaited(at(1_000)), false), Step::Leave);
        assert_eq!(step(Standing::Awaited(at(1_001)), true), Step::Return);
        assert_eq!(
            step(Standing::Awaited(at(900)), true),
            Step::Return,
            "whoever comes before it is said is back"
        );
        assert_eq!(step(Standing::Awaited(at(9_999)), false), Step::Await(at(1_050)), "the clock went back");
    }

    #[test]
    fn without_a_grace_whoever_has_no_socket_has_left() {
        let now = Timestamp::from_millis(1_000);
        for standing in
            [Standing::There, Standing::Awaited(now), Standing::Awaited(now + Duration::from_secs(9))]
        {
            assert_eq!(step(standing, false, Duration::ZERO, now), Step::Leave, "{standing:?}");
        }
    }
}
