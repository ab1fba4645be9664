//! Bodies of JavaScript: passed through as the streams that they are, and read only when somebody asks.

use super::{
    error::{caught, property, thrown},
    ext, turn,
};
use crate::{Body, Error, ErrorKind};
use bytes::Bytes;
use futures_core::Stream;
use js_sys::Uint8Array;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::ReadableStream;
use worker::send::SendWrapper;

/// A `ReadableStream` as a body. Nothing of it enters this program's memory before it is polled.
pub(crate) struct JsBody(SendWrapper<Source>);

enum Source {
    Untouched(Untouched),
    Reading(Reading),
    Ended,
}

/// A stream that nobody read from.
struct Untouched {
    stream: ReadableStream,
    /// Its sender is told when it is dropped. The platform would tell it only when the stream is collected, and keep
    /// the object that sends it in memory until then.
    tells: bool,
}

impl Drop for Untouched {
    fn drop(&mut self) {
        if self.tells
            && let Ok(cancelled) = self.stream.unchecked_ref::<ext::ByteStream>().cancel_stream()
        {
            ignore(cancelled);
        }
    }
}

struct Reading {
    reader: ext::ByteReader,
    pending: Option<JsFuture>,
}

impl JsBody {
    /// Of a request, which goes on although its body is dropped.
    pub(super) fn of_request(stream: ReadableStream) -> Self {
        Self(SendWrapper(Source::Untouched(Untouched { stream, tells: false })))
    }

    /// Of an answer.
    pub(super) fn of_answer(stream: ReadableStream) -> Self {
        Self(SendWrapper(Source::Untouched(Untouched { stream, tells: true })))
    }

    /// The stream itself, if nobody read from it.
    pub(crate) fn into_stream(mut self) -> Result<ReadableStream, Self> {
        match std::mem::replace(&mut self.0.0, Source::Ended) {
            Source::Untouched(mut untouched) => {
                untouched.tells = false;
                Ok(untouched.stream.clone())
            }
            other => {
                self.0.0 = other;
                Err(self)
            }
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let result = ready!(self.0.0.poll(cx));
        if !matches!(result, Some(Ok(_))) {
            self.0.0 = Source::Ended;
        }
        Poll::Ready(result)
    }
}

impl Source {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            match self {
                Self::Ended => return Poll::Ready(None),
                Self::Untouched(untouched) => {
                    let reader = untouched.stream.unchecked_ref::<ext::ByteStream>().reader();
                    untouched.tells = false;
                    match reader {
                        Ok(reader) => *self = Self::Reading(Reading { reader, pending: None }),
                        Err(e) => return Poll::Ready(Some(Err(ended_early(&e)))),
                    }
                }
                Self::Reading(reading) => {
                    let chunk = ready!(reading.poll(cx));
                    if !matches!(&chunk, Some(Ok(bytes)) if bytes.is_empty()) {
                        return Poll::Ready(chunk);
                    }
                }
            }
        }
    }
}

impl Reading {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let read = match &mut self.pending {
            Some(read) => read,
            None => match self.reader.read() {
                Ok(promise) => self.pending.insert(promise.into()),
                Err(e) => return Poll::Ready(Some(Err(ended_early(&e)))),
            },
        };
        let result = ready!(Pin::new(read).poll(cx));
        self.pending = None;
        Poll::Ready(match result {
            Err(e) => Some(Err(ended_early(&e))),
            Ok(read) if property(&read, "done").is_none_or(|done| done.is_truthy()) => None,
            Ok(read) => Some(
                chunk(property(&read, "value"))
                    .ok_or_else(|| Error::new(ErrorKind::Invalid, "the body gave something else than bytes")),
            ),
        })
    }
}

/// Whoever stops reading tells the sender, as a body of the native host does. At the end this does nothing.
impl Drop for Reading {
    fn drop(&mut self) {
        if let Ok(cancelled) = self.reader.cancel() {
            ignore(cancelled);
        }
    }
}

/// A rejection that nobody takes would be logged as a fault of the program.
fn ignore(promise: js_sys::Promise) {
    spawn_local(async move { drop(JsFuture::from(promise).await) });
}

fn chunk(value: Option<JsValue>) -> Option<Bytes> {
    value?.dyn_into::<Uint8Array>().ok().map(|bytes| bytes.to_vec().into())
}

fn ended_early(exception: &JsValue) -> Error {
    Error::new(ErrorKind::Transient, format!("the body ended early: {}", caught(exception)))
}

/// The body as what `new Response` and `new Request` take.
pub(super) fn into_js(body: Body) -> JsValue {
    match body.into_raw() {
        Ok(stream) => stream.into(),
        Err(body) => match body.into_complete() {
            Ok(bytes) if bytes.is_empty() => JsValue::NULL,
            Ok(bytes) => Uint8Array::from(&bytes[..]).into(),
            Err(body) => {
                let chunks = Chunks { body, storage: turn::storage(), held: None };
                wasm_streams::ReadableStream::from_stream(chunks).into_raw().into()
            }
        },
    }
}

/// The chunks of a body, pulled by the platform as the client takes them. It is dropped when the client leaves, and
/// with it the guard and the receiver of a channel inside.
///
/// The platform holds responses and calls until the writes before them are durable, but not the chunks that follow the
/// head. Here each of them waits too, and so does the end (rule C4).
struct Chunks {
    body: Body,
    /// Of the object that sends it, if one does.
    storage: Option<ext::Storage>,
    held: Option<Held>,
}

/// What comes next, and when it may leave.
struct Held {
    next: Option<JsValue>,
    synced: JsFuture,
}

impl Chunks {
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<JsValue, JsValue>>> {
        loop {
            let Some(frame) = ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), cx)) else {
                return Poll::Ready(None);
            };
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(bytes)) => return Poll::Ready(Some(Ok(Uint8Array::from(&bytes[..]).into()))),
                Ok(Err(_)) => {} // trailers, which the platform has no place for
                Err(error) => return Poll::Ready(Some(Err(thrown(&error)))),
            }
        }
    }
}

impl Stream for Chunks {
    type Item = Result<JsValue, JsValue>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.held.is_none() {
            let next = match (ready!(self.poll_body(cx)), &self.storage) {
                (Some(Err(error)), _) => return Poll::Ready(Some(Err(error))),
                (next, None) => return Poll::Ready(next),
                (Some(Ok(next)), Some(_)) => Some(next),
                (None, Some(_)) => None,
            };
            let Some(synced) = self.storage.as_ref().map(ext::Storage::sync).transpose()? else {
                return Poll::Ready(next.map(Ok));
            };
            self.held = Some(Held { next, synced: synced.into() });
        }
        let Some(held) = &mut self.held else { return Poll::Ready(None) };
        let synced = ready!(Pin::new(&mut held.synced).poll(cx));
        let next = self.held.take().and_then(|held| held.next);
        synced?;
        Poll::Ready(next.map(Ok))
    }
}
