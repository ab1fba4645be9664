//! The few ways of waiting that the suite needs, so that it brings no dependency into a Worker.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

/// A future of an object or of a case: it stays on its thread.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What the future gives if it need not wait.
pub(super) fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Both, side by side; the first is begun first.
pub async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    poll_fn(move |cx| {
        if of_a.is_none() {
            of_a = ready(a.as_mut().poll(cx));
        }
        if of_b.is_none() {
            of_b = ready(b.as_mut().poll(cx));
        }
        match (of_a.take(), of_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (of_a, of_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// All of them side by side, begun in order.
pub async fn all<T>(futures: Vec<Local<'_, T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|cx| {
        for (future, value) in &mut futures {
            if value.is_none() {
                *value = ready(future.as_mut().poll(cx));
            }
        }
        if futures.iter().all(|(_, value)| value.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, value)| value).collect()
}

/// What the future gives, or `None` if the other one ends before it.
pub async fn unless<T>(future: impl Future<Output = T>, other: impl Future) -> Option<T> {
    let (mut future, mut other) = (pin!(future), pin!(other));
    poll_fn(move |cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => other.as_mut().poll(cx).map(|_| None),
    })
    .await
}

/// Wakes itself and is pending once: whatever else can go on, does.
pub(crate) async fn give_way() {
    let mut first = true;
    poll_fn(move |cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
