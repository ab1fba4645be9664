//! Bodies of requests and responses: opaque, so that each host can pass its own kind through untouched.

mod channel;

#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub(crate) use channel::Held;
pub use channel::{BodySender, TrySend};

use crate::{Error, ErrorKind};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use std::{
    any::Any,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

/// The body of a request or a response, `Send + Sync` on every target.
///
/// It is an [`http_body::Body`], so it goes into axum, hyper and tower as it is; [`Body::from_http`] takes
/// theirs. Bytes that nobody reads are never copied.
///
/// ```
/// use do_core::Body;
///
/// # futures::executor::block_on(async {
/// let body = Body::from("hello");
/// assert_eq!(body.text(1_024).await?, "hello");
/// assert!(Body::from("hello").text(4).await.is_err()); // over the limit given
/// # Ok::<(), do_core::Error>(()) }).unwrap();
/// ```
#[derive(Default)]
pub struct Body {
    inner: Inner,
    /// Dropped with the body: how the host learns that a response was sent or abandoned.
    guard: Option<Box<dyn Any + Send + Sync>>,
}

type BoxHttp = Pin<Box<dyn HttpBody + Send>>;

#[derive(Default)]
enum Inner {
    #[default]
    Empty,
    Bytes(Bytes),
    Channel(channel::Receiver),
    /// The mutex is never contended (it is only reached through `&mut`): it makes any body `Sync`.
    Http(Mutex<BoxHttp>),
    #[cfg(all(feature = "workers", target_arch = "wasm32"))]
    Js(crate::workers::JsBody),
}

impl Body {
    /// No bytes.
    pub const fn empty() -> Self {
        Self { inner: Inner::Empty, guard: None }
    }

    /// A body that is written while it is read, holding at most `max_bytes` that were not read yet. A chunk
    /// larger than that is taken when nothing else waits.
    ///
    /// A response with such a body keeps its object in memory until it is finished or dropped (rule B3).
    pub fn channel(max_bytes: usize) -> (BodySender, Self) {
        let (sender, receiver) = channel::new(max_bytes);
        (sender, Self { inner: Inner::Channel(receiver), guard: None })
    }

    /// Any body of the `http` ecosystem.
    pub fn from_http<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error: fmt::Display> + Send + 'static,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self { inner: Inner::Http(Mutex::new(Box::pin(body))), guard: None }
    }

    /// The whole body, if it is at most `limit` bytes long.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] as soon as it is longer, and [`ErrorKind::Transient`] when the sender fails.
    ///
    /// # Cancel safety
    /// The body is consumed: what was read before the future was dropped is lost.
    pub fn bytes(self, limit: usize) -> impl Future<Output = Result<Bytes, Error>> + Send + use<> {
        let too_long = move || {
            Error::new(ErrorKind::Limit, format!("the body is longer than {limit} bytes")).of_request()
        };
        let mut this = self;
        async move {
            let _guard = this.guard.take();
            if http_body::Body::size_hint(&this).lower() > limit as u64 {
                return Err(too_long());
            }
            let mut first = Bytes::new();
            let mut all = BytesMut::new();
            while let Some(frame) = poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut this), cx)).await {
                let Ok(data) = frame?.into_data() else { continue };
                if first.len() + all.len() + data.len() > limit {
                    return Err(too_long());
                }
                match (first.is_empty(), all.is_empty()) {
                    (true, true) => first = data,
                    (false, _) => {
                        all.extend_from_slice(&std::mem::take(&mut first));
                        all.extend_from_slice(&data);
                    }
                    (true, false) => all.extend_from_slice(&data),
                }
            }
            Ok(if all.is_empty() { first } else { all.freeze() })
        }
    }

    /// The whole body as UTF-8 text.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), and [`ErrorKind::Invalid`] when it is no UTF-8.
    pub fn text(self, limit: usize) -> impl Future<Output = Result<String, Error>> + Send + use<> {
        let bytes = self.bytes(limit);
        async move {
            String::from_utf8(bytes.await?.into()).map_err(|e| {
                Error::new(ErrorKind::Invalid, "the body is not UTF-8")
                    .with_source(e.utf8_error())
                    .of_request()
            })
        }
    }

    /// The whole body read as JSON.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), and [`ErrorKind::Invalid`] when it is no JSON of that shape.
    pub fn json<T>(self, limit: usize) -> impl Future<Output = Result<T, Error>> + Send + use<T>
    where
        T: serde::de::DeserializeOwned,
    {
        let bytes = self.bytes(limit);
        async move {
            serde_json::from_slice(&bytes.await?).map_err(|e| {
                Error::new(ErrorKind::Invalid, format!("the body is not the JSON expected: {e}")).of_request()
            })
        }
    }

    /// Whether the whole content is here already, so that nothing keeps an object awake for it.
    #[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.inner, Inner::Empty | Inner::Bytes(_))
    }

    #[cfg(all(feature = "workers", target_arch = "wasm32"))]
    pub(crate) fn from_js(body: crate::workers::JsBody) -> Self {
        Self { inner: Inner::Js(body), guard: None }
    }

    /// The stream of JavaScript that it is, if nobody read from it.
    #[cfg(all(feature = "workers", target_arch = "wasm32"))]
    pub(crate) fn into_raw(self) -> Result<web_sys::ReadableStream, Self> {
        let Self { inner, guard } = self;
        match inner {
            Inner::Js(body) => body.into_stream().map_err(|body| Self { inner: Inner::Js(body), guard }),
            inner => Err(Self { inner, guard }),
        }
    }

    /// All bytes, if they are here already.
    #[cfg(all(feature = "workers", target_arch = "wasm32"))]
    pub(crate) fn into_complete(self) -> Result<Bytes, Self> {
        match self.inner {
            Inner::Empty => Ok(Bytes::new()),
            Inner::Bytes(bytes) => Ok(bytes),
            inner => Err(Self { inner, guard: self.guard }),
        }
    }

    /// Drops `guard` when the body is used up or dropped.
    #[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
    pub(crate) fn guarded(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Some(match self.guard.take() {
            Some(inner) => Box::new((inner, guard)),
            None => Box::new(guard),
        });
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match &mut self.inner {
            Inner::Empty => None,
            Inner::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                self.inner = Inner::Empty;
                (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)))
            }
            Inner::Channel(receiver) => ready!(receiver.poll(cx)).map(|r| r.map(Frame::data)),
            Inner::Http(body) => {
                ready!(body.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll_frame(cx))
            }
            #[cfg(all(feature = "workers", target_arch = "wasm32"))]
            Inner::Js(body) => ready!(body.poll(cx)).map(|r| r.map(Frame::data)),
        };
        if frame.is_none() {
            self.inner = Inner::Empty;
            self.guard = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Empty => true,
            Inner::Bytes(bytes) => bytes.is_empty(),
            Inner::Channel(_) | Inner::Http(_) => false,
            #[cfg(all(feature = "workers", target_arch = "wasm32"))]
            Inner::Js(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Channel(_) => SizeHint::default(),
            Inner::Http(body) => body.lock().unwrap_or_else(PoisonError::into_inner).size_hint(),
            #[cfg(all(feature = "workers", target_arch = "wasm32"))]
            Inner::Js(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.inner {
            Inner::Empty => "Body(empty)",
            Inner::Bytes(_) => "Body(bytes)",
            Inner::Channel(_) => "Body(channel)",
            Inner::Http(_) => "Body(http)",
            #[cfg(all(feature = "workers", target_arch = "wasm32"))]
            Inner::Js(_) => "Body(js)",
        })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self { inner: Inner::Bytes(bytes), guard: None }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

/// Any body of the `http` ecosystem, with errors of this crate's. A trait of its own instead of an adapter that would have
/// to be boxed in another box: open streams are polled for every event.
trait HttpBody {
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>>;
    fn size_hint(&self) -> SizeHint;
}

impl<B> HttpBody for B
where
    B: http_body::Body<Data = Bytes, Error: fmt::Display>,
{
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let failed = |e: B::Error| Error::new(ErrorKind::Transient, format!("the body ended early: {e}"));
        http_body::Body::poll_frame(self, cx).map(|frame| frame.map(|result| result.map_err(failed)))
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(self)
    }
}
