use crate::Failure;
use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

/// For patterns: runs a job so that a panic, where panics unwind, and a run without an end are failures of it alone.
///
/// `over` is a sleep of `limit`.
///
/// # Errors
/// The job's, and for one that panicked or took too long.
pub async fn guarded(
    job: impl Future<Output = Result<(), Failure>>,
    limit: Duration,
    over: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let (mut job, mut over) = (Some(Box::pin(job)), pin!(over));
    let mut ended = poll_fn(|cx| {
        let Some(running) = &mut job else { return Poll::Ready(Ok(())) };
        match caught(|| running.as_mut().poll(cx)) {
            Ok(Poll::Ready(result)) => Poll::Ready(result),
            Err(panic) => Poll::Ready(Err(panic)),
            Ok(Poll::Pending) => {
                over.as_mut().poll(cx).map(|()| Err(Failure::msg(format!("it took longer than {limit:?}"))))
            }
        }
    })
    .await;
    // Its destructors are its own code too.
    if let Err(panic) = caught(|| drop(job.take())) {
        ended = ended.and(Err(panic));
    }
    ended
}

/// Unwind safety: what panicked is not used again, and what objects share must stand errors anyway.
fn caught<T>(code: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(code))
        .map_err(|panic| Failure::msg(format!("it panicked: {}", words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}
