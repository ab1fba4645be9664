//! Brings the watcher's changes into the room: in order, one post at a time, and each until it is taken.

use super::watch::{Batch, RawChange, WatchError};
use crate::native::watch::ChangeKind;
use do_core::{Error, ErrorKind};
use std::{io, time::Duration};
use tokio::sync::mpsc::Receiver;

/// Most changes in one post: one commit of the room.
pub const MAX_CHANGES: usize = 1_000;
/// Most bytes of one post as JSON. Below the 64 KiB that the room takes; the longest rename alone fits.
const MAX_JSON_BYTES: usize = 60 * 1024;
/// What a change needs as JSON beside its paths.
const JSON_FRAME_BYTES: usize = r#"{"type":"change","kind":"modified","path":"","from":""},"#.len();

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Posts all changes that come out of `changes`, until the watcher ends. `post` is called with at most
/// [`MAX_CHANGES`] changes that fit one request, and again with the same ones while it fails in a way that passes:
/// the room may then see a change twice, never not at all. Meanwhile the watcher merges what comes in.
///
/// Ends well when the host shuts down. Dropping the future loses the changes of the post under way.
///
/// # Errors
/// The error that ended the watcher.
pub async fn forward(
    mut changes: Receiver<Batch>,
    mut post: impl AsyncFnMut(&[RawChange]) -> Result<(), Error>,
) -> Result<(), WatchError> {
    while let Some(batch) = changes.recv().await {
        let mut rest = batch?;
        while !rest.is_empty() {
            let later = rest.split_off(fitting(&rest));
            if !post_until_taken(&rest, &mut post).await {
                return Ok(());
            }
            rest = later;
        }
    }
    // A watcher tells why it ends, unless its thread was ended by a fault.
    Err(WatchError::Thread(io::Error::other("it stopped without a word")))
}

/// Whether to go on.
async fn post_until_taken(
    changes: &[RawChange],
    post: &mut impl AsyncFnMut(&[RawChange]) -> Result<(), Error>,
) -> bool {
    let mut pause = FIRST_PAUSE;
    loop {
        let Err(error) = post(changes).await else { return true };
        match error.kind() {
            ErrorKind::Shutdown => return false,
            ErrorKind::Transient
            | ErrorKind::Reset
            | ErrorKind::Overloaded
            | ErrorKind::Deadline
            | ErrorKind::Platform => {
                tracing::warn!(
                    "the room did not take {} changes, again in {pause:?}: {error}",
                    changes.len()
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            _ => {
                // Repeating cannot help, and would hold up all that follows.
                tracing::error!("the room refused {} changes, they are not recorded: {error}", changes.len());
                return true;
            }
        }
    }
}

/// How many of `changes`, which are not none, one post takes: at least one.
fn fitting(changes: &[RawChange]) -> usize {
    let mut bytes = 0;
    let fits = |change: &&RawChange| {
        bytes += json_bytes(change);
        bytes <= MAX_JSON_BYTES
    };
    changes.iter().take(MAX_CHANGES).take_while(fits).count().max(1)
}

fn json_bytes(change: &RawChange) -> usize {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => from,
        _ => "",
    };
    let escaped = |text: &str| -> usize {
        text.bytes()
            .map(|byte| if byte < 0x20 { 6 } else { 1 + usize::from(matches!(byte, b'"' | b'\\')) })
            .sum()
    };
    JSON_FRAME_BYTES + escaped(&change.path) + escaped(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    fn created(path: impl Into<String>) -> RawChange {
        RawChange { kind: ChangeKind::Created, path: path.into() }
    }

    /// Forwards `batches`; `answers` are the answers of the room, success when they run out. Returns the sizes of all
    /// posts.
    async fn posts(batches: Vec<Batch>, answers: &[ErrorKind]) -> (Vec<usize>, Result<(), WatchError>) {
        let (sender, receiver) = mpsc::channel(batches.len().max(1));
        for batch in batches {
            sender.try_send(batch).unwrap();
        }
        drop(sender);
        let (mut sizes, mut answers) = (Vec::new(), answers.iter());
        let end = forward(receiver, async |changes: &[RawChange]| {
            sizes.push(changes.len());
            answers.next().map_or(Ok(()), |kind| Err(Error::new(*kind, "no")))
        })
        .await;
        (sizes, end)
    }

    fn some(n: usize) -> Batch {
        Ok((0..n).map(|n| created(n.to_string())).collect())
    }

    #[tokio::test]
    async fn batches_are_posted_in_order_and_in_the_size_that_the_room_takes() {
        assert_eq!(posts(vec![some(2), some(1_500)], &[]).await.0[0], 2);
        let long = Ok(vec![created("x".repeat(4_000)); 40]);
        assert_eq!(posts(vec![long], &[]).await.0, [15, 15, 10]);
        let worst = "\u{1}".repeat(4_096);
        let renamed = RawChange { kind: ChangeKind::Renamed { from: worst.clone() }, path: worst };
        assert!(json_bytes(&renamed) < MAX_JSON_BYTES);
        assert_eq!(posts(vec![Ok(vec![renamed; 2])], &[]).await.0, [1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_post_is_repeated_while_the_fault_can_pass() {
        use ErrorKind::{Overloaded, Platform, Reset, Transient};
        let (sizes, _) = posts(vec![some(3), some(1)], &[Transient, Reset, Overloaded, Platform]).await;
        assert_eq!(sizes, [3, 3, 3, 3, 3, 1]);
    }

    #[tokio::test]
    async fn a_post_that_cannot_succeed_does_not_hold_up_the_next() {
        assert_eq!(posts(vec![some(3), some(1)], &[ErrorKind::Invalid]).await.0, [3, 1]);
    }

    #[tokio::test]
    async fn a_shutdown_ends_well_and_the_end_of_the_watcher_is_told() {
        let (sizes, end) = posts(vec![some(3), some(1)], &[ErrorKind::Shutdown]).await;
        assert!(sizes == [3] && end.is_ok());
        let (sizes, end) = posts(vec![some(1), Err(WatchError::RootGone("/x".into()))], &[]).await;
        assert!(sizes == [1] && matches!(end, Err(WatchError::RootGone(_))));
        assert!(matches!(posts(vec![], &[]).await.1, Err(WatchError::Thread(_))));
    }
}
