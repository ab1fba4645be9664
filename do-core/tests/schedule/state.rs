//! The state that the schedule under test is given: the kit's own, with a witness at the raw slot and at the end of each
//! turn, faults at any statement, and the flaws of a broken platform.

use super::{
    flaw,
    rows::Rows,
    watch::{self, Kind},
};
use do_core::{
    AlarmScheduler, Error, ErrorKind, Failure, ObjectId, ObjectState, Params, Rows as Found, SqlStorage,
    Timestamp,
};
use futures::FutureExt as _;
use std::{
    convert::Infallible,
    future::{Future, poll_fn, ready},
    ops::ControlFlow,
    pin::pin,
    task::Poll,
    time::Duration,
};

#[derive(Clone)]
pub(crate) struct Watched<S: ObjectState> {
    pub(crate) raw: S,
    instance: u32,
    alarms: WatchedAlarms<S>,
    sql: WatchedSql<S::Sql>,
}

impl<S: ObjectState> Watched<S> {
    pub(crate) fn new(raw: S, instance: u32, flaw: u8) -> Self {
        let alarms = WatchedAlarms { raw: raw.clone(), flaw };
        let sql = WatchedSql(raw.sql().clone());
        Self { raw, instance, alarms, sql }
    }

    /// Looks at what a turn leaves, when it ends without a panic.
    pub(crate) fn turn_ended(&self, kind: Kind, ended: Option<bool>) {
        let armed = self.raw.alarms().get().now_or_never().unwrap().unwrap();
        let now = self.raw.now().as_millis();
        let rows = watch::may_have_written().then(|| Rows::read(self.raw.sql()));
        watch::turn_ended(self.instance, kind, ended, rows, armed.map(Timestamp::as_millis), now);
    }

    /// Each poll of it is a turn.
    pub(crate) async fn turns<T>(
        &self,
        kind: Kind,
        work: impl Future<Output = T>,
        is_well: impl Fn(&T) -> bool,
    ) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let poll = work.as_mut().poll(cx);
            let ended = match &poll {
                Poll::Ready(value) => Some(is_well(value)),
                Poll::Pending => None,
            };
            self.turn_ended(kind, ended);
            poll
        })
        .await
    }
}

impl<S: ObjectState> ObjectState for Watched<S> {
    type Sockets = S::Sockets;
    type Alarms = WatchedAlarms<S>;
    type Sql = WatchedSql<S::Sql>;
    type Env = S::Env;

    fn id(&self) -> &ObjectId {
        self.raw.id()
    }

    fn env(&self) -> &S::Env {
        self.raw.env()
    }

    fn sockets(&self) -> &S::Sockets {
        self.raw.sockets()
    }

    fn alarms(&self) -> &WatchedAlarms<S> {
        &self.alarms
    }

    fn sql(&self) -> &WatchedSql<S::Sql> {
        &self.sql
    }

    fn now(&self) -> Timestamp {
        self.raw.now()
    }

    fn random(&self) -> u64 {
        self.raw.random()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<S> {
        self.raw.sleep(duration)
    }

    fn wait_until(&self, work: impl Future<Output = ()> + 'static) {
        let state = self.clone();
        self.raw.wait_until(async move { state.turns(Kind::Background, work, |()| true).await });
    }

    fn block_concurrency_while<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Failure>> + use<S, T, F>
    where
        T: 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
    {
        self.raw.block_concurrency_while(work)
    }

    fn at_first_event(&self, work: impl FnOnce() + 'static) {
        self.raw.at_first_event(work);
    }

    async fn reset(&self, reason: &str) -> Infallible {
        self.raw.reset(reason).await
    }

    fn delete_all(&self) -> Result<(), Error> {
        self.raw.delete_all()
    }
}

#[derive(Clone)]
pub(crate) struct WatchedAlarms<S: ObjectState> {
    raw: S,
    flaw: u8,
}

impl<S: ObjectState> AlarmScheduler for WatchedAlarms<S> {
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<S> {
        let now = self.raw.now();
        let ignored = match self.flaw {
            flaw::NO_REARM_AFTER_FAILURE => watch::failed_in_run(),
            flaw::NO_REARM_IN_RUN => watch::is_running(),
            flaw::PAST_IS_NEVER => at <= now + Duration::from_millis(1),
            _ => false,
        };
        let result = if ignored { Ok(()) } else { self.raw.alarms().set(at).now_or_never().unwrap() };
        watch::alarm_set(at.as_millis(), now.as_millis(), ignored || result.is_ok());
        ready(result)
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        self.raw.alarms().get().await
    }

    async fn delete(&self) -> Result<(), Error> {
        watch::alarm_deleted();
        self.raw.alarms().delete().await
    }
}

#[derive(Clone)]
pub(crate) struct WatchedSql<Q>(Q);

impl<Q: SqlStorage> SqlStorage for WatchedSql<Q> {
    fn exec(&self, sql: &str, params: impl Params) -> Result<Found, Error> {
        if watch::statement_fails() {
            return Err(Error::new(ErrorKind::Platform, "this statement was to fail"));
        }
        if !sql.starts_with("SELECT") {
            watch::writes();
        }
        self.0.exec(sql, params)
    }

    fn for_each(
        &self,
        sql: &str,
        params: impl Params,
        each: impl FnMut(do_core::Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.0.for_each(sql, params, each)
    }

    fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        self.0.transaction(body)
    }

    fn rollbacks(&self) -> u64 {
        self.0.rollbacks()
    }

    fn database_size(&self) -> u64 {
        self.0.database_size()
    }
}
