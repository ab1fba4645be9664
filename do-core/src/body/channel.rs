//! A bounded byte queue between a handler and whoever reads the body.
//!
//! Its one special part is the hold: what a handler writes during a turn is kept back until that turn's commit
//! is durable, as every output of an object is (rule C4). The host opens and closes the hold; elsewhere there
//! is none and bytes pass at once.

use crate::{Error, ErrorKind};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    /// Written in turns whose commit is not durable yet; with each, whether it has a `Held` of its own or only
    /// stands behind one that has. Always empty where no host holds anything.
    held: VecDeque<(Written, bool)>,
    /// Bytes in both queues.
    queued: usize,
    max: usize,
    sender_gone: bool,
    receiver_gone: bool,
    /// The turn that wrote `held` was rolled back, or the writer was thrown away: the reader gets an error instead
    /// of a short body.
    failed: Option<Error>,
    reader: Option<Waker>,
    watchers: Vec<Waker>,
}

/// What a handler does to a body.
enum Written {
    Chunk(Bytes),
    /// The sender was dropped: the body is complete.
    End,
}

type Shared = Arc<Mutex<State>>;

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    // Nothing panics while it is locked; if something did, the queue would still be whole.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn new(max: usize) -> (BodySender, Receiver) {
    let shared = Arc::new(Mutex::new(State { max, ..State::default() }));
    (BodySender(Arc::clone(&shared)), Receiver(shared))
}

/// The writing end of [`Body::channel`](super::Body::channel). Dropping it ends the body.
pub struct BodySender(Shared);

impl BodySender {
    /// Queues a chunk without waiting.
    ///
    /// # Errors
    /// [`TrySend::Full`] when it does not fit: the reader is slow. [`TrySend::Closed`] when the reader is gone.
    /// Both give the chunk back.
    pub fn try_send(&self, chunk: impl Into<Bytes>) -> Result<(), TrySend> {
        let chunk = chunk.into();
        let mut state = lock(&self.0);
        if state.receiver_gone || state.failed.is_some() {
            return Err(TrySend::Closed(chunk));
        }
        if state.queued > 0 && state.queued.saturating_add(chunk.len()) > state.max {
            return Err(TrySend::Full(chunk));
        }
        if chunk.is_empty() {
            return Ok(());
        }
        state.queued += chunk.len();
        if pass(&mut state, &self.0, Written::Chunk(chunk)) {
            wake(state);
        }
        Ok(())
    }

    /// Completes when the reader is gone: the client left, or the body was dropped unread.
    ///
    /// It owns its share, so that it can be watched from `wait_until`.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = lock(&shared);
            if state.receiver_gone {
                return Poll::Ready(());
            }
            if !state.watchers.iter().any(|w| w.will_wake(cx.waker())) {
                state.watchers.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Whether the reader is gone.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).receiver_gone
    }

    /// Bytes written and not yet read.
    pub fn queued_bytes(&self) -> usize {
        lock(&self.0).queued
    }
}

/// Lets a write through, unless the turn that makes it holds it back. True when it went through.
fn pass(state: &mut State, shared: &Shared, written: Written) -> bool {
    let own_hold = hold(shared);
    if own_hold || !state.held.is_empty() {
        state.held.push_back((written, own_hold));
        return false;
    }
    state.take_in(written);
    true
}

#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
fn hold(shared: &Shared) -> bool {
    !is_cut_off() && crate::engine::hold_body(|| Held(Arc::clone(shared)))
}

/// Only the native host holds.
#[cfg(not(all(feature = "tokio", not(target_arch = "wasm32"))))]
fn hold(_shared: &Shared) -> bool {
    false
}

impl State {
    fn take_in(&mut self, written: Written) {
        match written {
            Written::Chunk(chunk) => self.queue.push_back(chunk),
            Written::End => self.sender_gone = true,
        }
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Why a body ends early.
const CUT_OFF: &str = "the object went away while it wrote this body";

/// Whether a sender that is dropped now did not mean to end its body: its writer panics, or is thrown away.
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
fn is_cut_off() -> bool {
    crate::engine::is_cutting_off()
}

/// Only the native host throws writers away; elsewhere a panic is what ends one early.
#[cfg(not(all(feature = "tokio", not(target_arch = "wasm32"))))]
fn is_cut_off() -> bool {
    std::thread::panicking()
}

impl Drop for BodySender {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        if is_cut_off() {
            // The reader must not take what it has for the whole.
            state.failed.get_or_insert_with(|| Error::new(ErrorKind::Reset, CUT_OFF));
        }
        if pass(&mut state, &self.0, Written::End) {
            wake(state);
        }
    }
}

impl fmt::Debug for BodySender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0);
        f.debug_struct("BodySender").field("queued", &state.queued).field("max", &state.max).finish()
    }
}

/// Why a chunk was not taken. Both variants give it back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrySend {
    /// The reader has not kept up with what was queued before.
    #[error("the reader of the body is too slow: its queue is full")]
    Full(Bytes),
    /// The reader is gone.
    #[error("the reader of the body is gone")]
    Closed(Bytes),
}

pub(super) struct Receiver(Shared);

impl Receiver {
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let mut state = lock(&self.0);
        if let Some(chunk) = state.queue.pop_front() {
            state.queued -= chunk.len();
            return Poll::Ready(Some(Ok(chunk)));
        }
        if let Some(error) = state.failed.as_ref().filter(|_| state.held.is_empty()) {
            return Poll::Ready(Some(Err(error.clone())));
        }
        if state.sender_gone && state.held.is_empty() {
            return Poll::Ready(None);
        }
        state.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.receiver_gone = true;
        state.queue.clear();
        state.held.clear();
        state.queued = 0;
        let watchers = std::mem::take(&mut state.watchers);
        drop(state);
        for watcher in watchers {
            watcher.wake();
        }
    }
}

/// One chunk that a turn wrote: let through once the turn's commit is durable, or failed.
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub(crate) struct Held(Shared);

#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
impl Held {
    pub(crate) fn release(self) {
        let mut state = lock(&self.0);
        while let Some((written, _)) = state.held.pop_front() {
            state.take_in(written);
            if state.held.front().is_none_or(|(_, own_hold)| *own_hold) {
                break;
            }
        }
        wake(state);
    }

    /// The commit failed: nothing of it may be seen, and the body ends with an error, not as if complete.
    pub(crate) fn fail(self) {
        let mut state = lock(&self.0);
        let held = std::mem::take(&mut state.held);
        for (written, _) in held {
            if let Written::Chunk(chunk) = written {
                state.queued -= chunk.len();
            }
        }
        state.failed = Some(Error::new(ErrorKind::Reset, "the object was reset while it wrote this body"));
        wake(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn next(receiver: &mut Receiver) -> Poll<Option<Bytes>> {
        receiver.poll(&Context::from_waker(Waker::noop())).map(|chunk| chunk.transpose().unwrap())
    }

    #[test]
    fn bounds_the_queue_but_takes_one_large_chunk() {
        let (sender, mut receiver) = new(4);
        sender.try_send("123456").unwrap();
        assert_eq!(sender.try_send("7"), Err(TrySend::Full("7".into())));
        assert_eq!(next(&mut receiver), Poll::Ready(Some("123456".into())));
        sender.try_send("78").unwrap();
        sender.try_send("90").unwrap();
        assert_eq!(sender.try_send("1"), Err(TrySend::Full("1".into())));
        assert_eq!(sender.queued_bytes(), 4);
    }

    #[test]
    fn a_writer_that_panics_does_not_pass_for_one_that_ended() {
        let (sender, mut receiver) = new(4);
        let writer = std::panic::catch_unwind(move || {
            sender.try_send("1").unwrap();
            std::panic::resume_unwind(Box::new("in the middle of the body"));
        });
        assert!(writer.is_err());
        assert_eq!(next(&mut receiver), Poll::Ready(Some("1".into())));
        let Poll::Ready(Some(Err(error))) = receiver.poll(&Context::from_waker(Waker::noop())) else {
            panic!("a short body passes for whole");
        };
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Reset, CUT_OFF.to_owned()));
    }

    #[test]
    fn ends_when_the_sender_is_dropped_and_tells_when_the_reader_is() {
        let (sender, mut receiver) = new(4);
        assert_eq!(next(&mut receiver), Poll::Pending);
        drop(sender);
        assert_eq!(next(&mut receiver), Poll::Ready(None));

        let (sender, receiver) = new(4);
        assert_eq!(sender.closed().now_or_never(), None);
        drop(receiver);
        assert_eq!(sender.closed().now_or_never(), Some(()));
        assert_eq!(sender.try_send("x"), Err(TrySend::Closed("x".into())));
    }
}
