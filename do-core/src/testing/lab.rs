use super::{
    case::{Fault, Outcome, holds},
    deployment::Deployment,
    driver::{Client, Driver, Opened, Received},
    route::percent_encoded,
    tasks::{Local, all, unless},
    thrown::Thrown,
};
use crate::Message;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{fmt, iter, time::Duration};

/// The times between two looks at something that is to come: short ones at first, then longer ones, as a look costs the host
/// much more than the time that passes between two.
pub(super) fn looks() -> impl Iterator<Item = Duration> {
    let next = |before: &Duration| Some((*before * 5 / 4).min(Duration::from_millis(250)));
    iter::successors(Some(Duration::from_millis(20)), next)
}

/// A host as a case uses it, with objects of the case's own: what it calls `a` is another object than the `a` of
/// another case.
#[derive(Debug)]
pub struct Lab<D> {
    driver: D,
    case: String,
}

impl<D: Driver> Lab<D> {
    /// `case` is different for each case that shares the host.
    pub fn new(driver: D, case: impl Into<String>) -> Self {
        Self { driver, case: case.into() }
    }

    /// The driver, for what the lab has no words for.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver back.
    pub fn into_driver(self) -> D {
        self.driver
    }

    /// What the object is called on the host.
    pub fn name(&self, object: &str) -> String {
        format!("{}/{object}", self.case)
    }

    /// A path to the object: what stands before it, without a slash at the end, and its name percent-encoded.
    pub fn address(&self, before: &str, object: &str) -> String {
        format!("{before}/{}", percent_encoded(&self.name(object)))
    }

    pub(super) fn path(&self, what: &str, object: &str) -> String {
        self.address(&format!("/{what}/PROBE"), object)
    }

    /// What the entry answers to JSON under a path: JSON too, or an error of the host.
    ///
    /// # Errors
    /// There is no answer, or one that is neither 200 with JSON nor 500 with a [`Thrown`].
    pub async fn ask(&self, path: &str, steps: &Value) -> Result<Result<Value, Thrown>, Fault> {
        let (status, body) = self.driver.post(path, serde_json::to_vec(steps)?).await?;
        answer(status, &body).map_err(|fault| fault.during(&format!("{path} with {steps}")))
    }

    /// [`ask`](Self::ask) for what must succeed.
    ///
    /// # Errors
    /// As [`ask`](Self::ask), or there was an error.
    pub async fn value(&self, path: &str, steps: &Value) -> Result<Value, Fault> {
        self.ask(path, steps).await?.map_err(|thrown| Fault::new(format!("{path} failed: {thrown:?}")))
    }

    /// Runs steps in an object and gives what it answered, or the error that its caller saw.
    pub(super) async fn answer(
        &self,
        object: &str,
        steps: Value,
    ) -> Result<Result<Vec<Value>, Thrown>, Fault> {
        match self.ask(&self.path("run", object), &steps).await? {
            Ok(Value::Array(values)) => Ok(Ok(values)),
            Ok(other) => Err(Fault::new(format!("{steps} gave {other}"))),
            Err(thrown) => Ok(Err(thrown)),
        }
    }

    /// Runs steps that must succeed.
    pub(super) async fn run(&self, object: &str, steps: Value) -> Result<Vec<Value>, Fault> {
        let what = steps.to_string();
        self.answer(object, steps).await?.map_err(|thrown| Fault::new(format!("{what} failed: {thrown:?}")))
    }

    /// The value of the last step.
    pub(super) async fn last(&self, object: &str, steps: Value) -> Result<Value, Fault> {
        self.run(object, steps).await?.pop().ok_or_else(|| Fault::new("no steps"))
    }

    /// Runs steps that must fail.
    pub(super) async fn thrown(&self, object: &str, steps: Value) -> Result<Thrown, Fault> {
        let what = steps.to_string();
        match self.answer(object, steps).await? {
            Ok(values) => Err(Fault::new(format!("{what} gave {values:?} instead of an error"))),
            Err(thrown) => Ok(thrown),
        }
    }

    /// Runs the same steps this many times side by side.
    pub(super) async fn many(&self, object: &str, steps: Value, times: usize) -> Outcome {
        let call = |_| -> Local<'_, _> { Box::pin(self.run(object, steps.clone())) };
        all((0..times).map(call).collect()).await.into_iter().try_for_each(|result| result.map(drop))
    }

    /// The lines that were noted, without their times.
    pub(super) async fn lines(&self, object: &str) -> Result<Value, Fault> {
        self.last(object, json!([{"sql": "SELECT line FROM log ORDER BY rowid"}])).await
    }

    /// The texts of the socket events.
    pub(super) async fn events(&self, object: &str) -> Result<Value, Fault> {
        self.last(object, json!(["events"])).await
    }

    /// Returns when the number in the object's memory is at least `n`: so many requests are under way.
    pub(super) async fn begun(&self, object: &str, n: i64) -> Outcome {
        for _ in 0..10_000 {
            if self.last(object, json!([{"add": 0}])).await?.as_i64() >= Some(n) {
                return Ok(());
            }
        }
        Err(Fault::new("what was to begin did not"))
    }

    /// Looks until the steps' last value is as wanted, while time passes, at most `limit` of it.
    pub(super) async fn until(
        &self,
        object: &str,
        steps: Value,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, Fault> {
        self.look(object, steps, limit, false, wanted).await
    }

    /// The same over a reset: a look that is in flight when the object is reset fails with it, and the next one tells more.
    pub(super) async fn until_over_reset(
        &self,
        object: &str,
        steps: Value,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, Fault> {
        self.look(object, steps, limit, true, wanted).await
    }

    async fn look(
        &self,
        object: &str,
        steps: Value,
        limit: Duration,
        may_fail: bool,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, Fault> {
        let what = steps.to_string();
        let look = async || match self.answer(object, steps.clone()).await? {
            Ok(mut values) => Ok(Ok(values.pop().ok_or_else(|| Fault::new("no steps"))?)),
            Err(thrown) if may_fail => Ok(Err(thrown)),
            Err(thrown) => Err(Fault::new(format!("{steps} failed: {thrown:?}"))),
        };
        let seen = self.eventually(&what, limit, look, |seen| seen.as_ref().is_ok_and(&wanted)).await?;
        seen.map_err(|thrown| Fault::new(format!("{what} failed: {thrown:?}")))
    }

    /// Looks until what is seen is as wanted, while time passes, at most `limit` of it.
    ///
    /// # Errors
    /// It is not within the limit, or a look fails.
    pub async fn eventually<T: fmt::Debug>(
        &self,
        what: &str,
        limit: Duration,
        look: impl AsyncFn() -> Result<T, Fault>,
        wanted: impl Fn(&T) -> bool,
    ) -> Result<T, Fault> {
        let mut passed = Duration::ZERO;
        for time in looks() {
            let seen = look().await?;
            if wanted(&seen) {
                return Ok(seen);
            }
            if passed >= limit {
                return Err(Fault::new(format!("after {limit:?}, {what} still gives {seen:?}")));
            }
            self.advance(time).await?;
            passed += time;
        }
        Err(Fault::new("the looks have no end"))
    }

    /// Fails if the future ends while `time` passes; otherwise it is dropped.
    ///
    /// # Errors
    /// It ended, or the host is gone.
    pub async fn silent<T: fmt::Debug>(
        &self,
        what: &str,
        future: impl Future<Output = T>,
        time: Duration,
    ) -> Outcome {
        match unless(future, self.advance(time)).await {
            Some(answer) => Err(Fault::new(format!("{what}: there was an answer, {answer:?}"))),
            None => Ok(()),
        }
    }

    /// Opens a WebSocket; `query` as [`Probe`](super::Probe) reads it.
    pub(super) async fn open(&self, object: &str, query: &[(&str, &str)]) -> Result<D::Client, Fault> {
        self.connect(&self.socket_path(object, query)).await
    }

    /// Opens a WebSocket under a path.
    ///
    /// # Errors
    /// It is refused, or the host is gone.
    pub async fn connect(&self, path: &str) -> Result<D::Client, Fault> {
        match self.driver.open(path).await? {
            Opened::Client(client) => Ok(client),
            Opened::Refused(status, body) => {
                Err(Fault::new(format!("refused with {status}: {}", String::from_utf8_lossy(&body))))
            }
        }
    }

    /// The error with which the object refuses a WebSocket.
    pub(super) async fn refused(&self, object: &str, query: &[(&str, &str)]) -> Result<Thrown, Fault> {
        match self.driver.open(&self.socket_path(object, query)).await? {
            Opened::Client(_) => Err(Fault::new("it was opened instead of refused")),
            Opened::Refused(status, body) => match answer(status, &body)? {
                Ok(value) => Err(Fault::new(format!("answered with {value}"))),
                Err(thrown) => Ok(thrown),
            },
        }
    }

    fn socket_path(&self, object: &str, query: &[(&str, &str)]) -> String {
        self.queried(&self.path("ws", object), query)
    }

    /// The path with these keys and values, percent-encoded, as its query.
    pub fn queried(&self, path: &str, query: &[(&str, &str)]) -> String {
        let pairs: Vec<_> =
            query.iter().map(|(key, value)| format!("{key}={}", percent_encoded(value))).collect();
        format!("{path}?{}", pairs.join("&"))
    }

    /// [`Driver::advance`].
    ///
    /// # Errors
    /// The host is gone.
    pub async fn advance(&self, by: Duration) -> Outcome {
        self.driver.advance(by).await
    }

    /// [`Driver::evict`]; the case says that it does so: [`Case::evicts`](super::Case::evicts).
    ///
    /// # Errors
    /// The host is gone, or an object stays.
    pub async fn evict(&self) -> Outcome {
        self.driver.evict().await
    }

    /// [`Driver::crash`]; the case says that it does so: [`Case::crashes`](super::Case::crashes).
    ///
    /// # Errors
    /// The host does not start again.
    pub async fn crash(&self) -> Outcome {
        self.driver.crash().await
    }

    pub(super) async fn deploy(&self, deployment: Deployment) -> Outcome {
        self.driver.deploy(deployment).await
    }

    /// ms that are `ms` after an eviction that begins now.
    pub fn after_eviction(&self, ms: i64) -> i64 {
        ms.saturating_add(i64::try_from(self.driver.eviction_takes().as_millis()).unwrap_or(i64::MAX))
    }
}

/// What cases say to a client and hear from it.
#[allow(async_fn_in_trait)] // cases run on one thread
pub trait ClientExt: Client {
    /// Sends a text.
    ///
    /// # Errors
    /// The connection is gone.
    async fn text(&mut self, text: &str) -> Outcome {
        self.send(text.into()).await
    }

    /// Sends steps and gives what they gave.
    ///
    /// # Errors
    /// Something else than a message with JSON came, or nothing.
    async fn steps(&mut self, steps: Value) -> Result<Value, Fault> {
        self.text(&steps.to_string()).await?;
        match self.receive().await? {
            Received::Message(message) => Ok(message.parse_json()?),
            other => Err(Fault::new(format!("{steps} was answered with {other:?}"))),
        }
    }

    /// Receives what is expected.
    ///
    /// # Errors
    /// Something else came, or nothing.
    async fn hears(&mut self, what: &str, expected: Received) -> Outcome {
        let got = self.receive().await.map_err(|fault| fault.during(what))?;
        holds(format!("{what}: got {got:?}, expected {expected:?}"), got == expected)
    }

    /// Receives a text message.
    ///
    /// # Errors
    /// Something else came, or nothing.
    async fn hears_text(&mut self, what: &str, text: &str) -> Outcome {
        self.hears(what, Received::Message(Message::text(text))).await
    }
}

impl<C: Client> ClientExt for C {}

/// A Close frame with a code and a reason.
pub fn closed(code: u16, reason: &str) -> Received {
    Received::Close(Some((code, reason.to_owned())))
}

fn answer(status: u16, body: &[u8]) -> Result<Result<Value, Thrown>, Fault> {
    #[derive(Deserialize)]
    struct Failed {
        error: Thrown,
    }
    let unclear = |why: String| {
        let body = String::from_utf8_lossy(body);
        Fault::new(format!("the answer {status} {body:?} is none of the probe's: {why}"))
    };
    match status {
        200 => serde_json::from_slice(body).map(Ok).map_err(|e| unclear(e.to_string())),
        500 => {
            serde_json::from_slice::<Failed>(body).map(|f| Err(f.error)).map_err(|e| unclear(e.to_string()))
        }
        _ => Err(unclear("the status".to_owned())),
    }
}
