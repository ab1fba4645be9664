//! Time that passes: `setTimeout` as a future.

use super::{error::caught, ext};
use crate::Error;
use js_sys::Promise;
use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// `setTimeout` takes 31 bits: longer sleeps are made of several.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// Completes after a time. Starts at the first poll, which must be inside an event; dropping it stops the timer.
pub(super) struct Timer {
    left: Duration,
    running: Option<(JsFuture, JsValue)>,
}

impl Timer {
    pub(super) fn new(duration: Duration) -> Self {
        Self { left: duration, running: None }
    }

    fn start(&mut self) -> Result<(JsFuture, JsValue), Error> {
        // Never early: a part of a millisecond counts as a whole one.
        let now = self.left.min(LONGEST);
        let ms = i32::try_from(now.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
        self.left = self.left.saturating_sub(now);
        let mut timer = Err(JsValue::UNDEFINED);
        // Moved in as one value: a closure that captures a plain `&mut` is not unwind-safe.
        let mut made = AssertUnwindSafe(&mut timer);
        let fired = Promise::new(&mut move |resolve, _| {
            let made = &mut made;
            ***made = ext::set_timeout(&resolve.unchecked_into(), ms);
        });
        Ok((JsFuture::from(fired), timer.map_err(|e| caught(&e))?))
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some((fired, _)) = &mut self.running {
                if Pin::new(fired).poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.running = None;
                if self.left.is_zero() {
                    return Poll::Ready(());
                }
            }
            match self.start() {
                Ok(running) => self.running = Some(running),
                // Outside an event there is no time; whoever waits there learns it from the log instead of hanging.
                Err(error) => {
                    tracing::error!(%error, "a timer cannot be set here");
                    return Poll::Ready(());
                }
            }
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some((_, timer)) = &self.running {
            // A timer that fires into nothing would only keep the object awake.
            let _ = ext::clear_timeout(timer);
        }
    }
}
