//! The suite's client of streams.

use do_core::testing::{Driver, Exchange, Fault, Head, Lab, Leave, Outcome, Piece, holds, same};
use do_sse::{Decoded, Decoder, Item};
use http::{HeaderValue, Method, Request, Response};
use serde_json::Value;
use std::time::Duration;

/// Most bytes that are read at a time.
const MOST: usize = 64 * 1_024;

/// A request for a stream.
#[derive(Debug, Clone)]
pub(crate) struct Ask<'a> {
    object: &'a str,
    method: Method,
    query: Vec<(&'a str, &'a str)>,
    headers: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Ask<'a> {
    pub(crate) fn of(object: &'a str) -> Self {
        Self { object, method: Method::GET, query: Vec::new(), headers: Vec::new() }
    }

    pub(crate) fn id(self, id: &'a str) -> Self {
        self.query("id", id)
    }

    pub(crate) fn topic(self, topic: &'a str) -> Self {
        self.query("topic", topic)
    }

    pub(crate) fn query(mut self, key: &'a str, value: &'a str) -> Self {
        self.query.push((key, value));
        self
    }

    pub(crate) fn after(self, id: &'a str) -> Self {
        self.header("last-event-id", id.as_bytes())
    }

    pub(crate) fn header(mut self, name: &'a str, value: &'a [u8]) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn head(self) -> Self {
        self.method(Method::HEAD)
    }

    pub(crate) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The stream, which has begun: its head was read.
    pub(crate) async fn open<D: Driver>(self, lab: &Lab<D>) -> Result<Stream<D::Exchange>, Fault> {
        let path = lab.queried(&lab.address("/feed", self.object), &self.query);
        let mut head = Request::builder().method(self.method).uri(path);
        for (name, value) in self.headers {
            head = head.header(name, HeaderValue::from_bytes(value)?);
        }
        Stream::begin(lab, head.body(())?).await
    }

    /// The same, of which the first event was read.
    pub(crate) async fn ready<D: Driver>(self, lab: &Lab<D>) -> Result<Stream<D::Exchange>, Fault> {
        let mut stream = self.open(lab).await?;
        stream.ready().await?;
        Ok(stream)
    }
}

/// A stream that is read only when something of it is asked for.
pub(crate) struct Stream<E> {
    exchange: E,
    decoder: Decoder,
    pub(crate) head: Response<()>,
    /// The last time to come back after, in ms.
    pub(crate) retry: Option<u64>,
    /// How it ended.
    ended: Option<Piece>,
}

impl<E: Exchange> Stream<E> {
    /// For a request of any kind.
    pub(crate) async fn begin<D>(lab: &Lab<D>, head: Head) -> Result<Self, Fault>
    where
        D: Driver<Exchange = E>,
    {
        let mut exchange = lab.driver().begin(head).await?;
        let head = exchange.head().await?;
        Ok(Self { exchange, decoder: Decoder::with_limit(8 << 20), head, retry: None, ended: None })
    }

    /// The next of anything; `None` at the end.
    pub(crate) async fn item(&mut self) -> Result<Option<Item>, Fault> {
        loop {
            if let Some(item) = self.decoder.next_item()? {
                if let Item::Retry(retry) = item {
                    self.retry = u64::try_from(retry.as_millis()).ok();
                }
                return Ok(Some(item));
            }
            if self.ended.is_some() {
                return Ok(None);
            }
            match self.exchange.read(MOST).await? {
                Piece::Bytes(bytes) => self.decoder.push(&bytes)?,
                end => self.ended = Some(end),
            }
        }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Decoded>, Fault> {
        while let Some(item) = self.item().await? {
            if let Item::Event(event) = item {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The next event, which must come.
    pub(crate) async fn event(&mut self) -> Result<Decoded, Fault> {
        match self.next().await? {
            Some(event) => Ok(event),
            None => Err(Fault::new(format!("the stream is over ({:?})", self.ended))),
        }
    }

    /// The first event of every stream: the id of the connection.
    pub(crate) async fn ready(&mut self) -> Result<String, Fault> {
        let event = self.event().await?;
        same("the first event", &event.event, "ready")?;
        let data: Value = serde_json::from_str(&event.data)?;
        Ok(data["connection"].as_str().unwrap_or_default().to_owned())
    }

    /// The event `reset`, which comes next: its data.
    pub(crate) async fn reset(&mut self) -> Result<Value, Fault> {
        let event = self.event().await?;
        same("the event", &event.event, "reset")?;
        Ok(serde_json::from_str(&event.data)?)
    }

    /// The data of the events that come next, without the spaces at the end; comments are passed over.
    pub(crate) async fn hears<T: ToString>(
        &mut self,
        what: &str,
        expected: impl IntoIterator<Item = T>,
    ) -> Outcome {
        for expected in expected {
            let event = self.event().await.map_err(|fault| fault.during(what))?;
            same(what, event.data.trim_end(), expected.to_string())?;
        }
        Ok(())
    }

    /// A heartbeat, which comes next.
    pub(crate) async fn beat(&mut self) -> Outcome {
        let item = self.item().await?;
        holds(format!("{item:?} instead of a heartbeat"), item == Some(Item::Comment(String::new())))
    }

    /// The end, without another event.
    pub(crate) async fn ends(&mut self) -> Outcome {
        match self.next().await? {
            None => holds(format!("it ends with {:?}", self.ended), self.ended == Some(Piece::End)),
            Some(event) => Err(Fault::new(format!("{event:?} instead of the end"))),
        }
    }

    /// The end, proper or not, without another event: a client comes back after either.
    pub(crate) async fn is_over(&mut self) -> Outcome {
        match self.next().await? {
            None => Ok(()),
            Some(event) => Err(Fault::new(format!("{event:?} instead of the end"))),
        }
    }

    /// What an `EventSource` would come back with.
    pub(crate) fn last_id(&self) -> &str {
        self.decoder.last_event_id()
    }

    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        let values = self.head.headers().get_all(name).into_iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    pub(crate) async fn half_close(&mut self) -> Outcome {
        self.exchange.half_close().await
    }

    pub(crate) fn leave(self, how: Leave) {
        self.exchange.leave(how);
    }
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
