//! What waits to be written to one connection.

use bytes::{Buf, Bytes};
use hyper::rt::Write;
use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Frames handed to the operating system in one call.
const SLICES: usize = 64;

/// Bytes whose copying costs more than the call that hands them over.
const ENOUGH_BYTES: usize = 16 * 1_024;

/// Pongs that wait at most. Beyond it the newest takes the place of the one before (RFC 6455 section 5.5.3), so
/// that pings of a peer that does not read cost nothing.
const MAX_PONGS: u8 = 16;

/// Frames in the order they leave, without a heap allocation while it is empty.
///
/// Pongs overtake messages, because a peer measures the connection by them, but never cut into a frame that is
/// partly written. They do not count as bytes: otherwise a ping could make a message no longer fit.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// At most one partly written message, then the pongs, then the other messages.
    frames: VecDeque<Bytes>,
    /// Bytes of messages and Close frames that are not written.
    bytes: usize,
    pongs: u8,
    /// Whether a partly written message is ahead of the pongs.
    overtaken: bool,
    /// Whether the first frame is partly written. Its written bytes are cut off already.
    begun: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes of messages and Close frames that are not written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many frames wait.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether waiting for more would not make writing cheaper, or a pong would wait.
    pub(super) fn is_worth_a_write(&self) -> bool {
        self.pongs > 0 || self.bytes >= ENOUGH_BYTES || self.frames.len() >= SLICES
    }

    /// Whether `more` bytes fit a bound in bytes, behind `gated` messages with `gated_bytes` that are not here
    /// yet. Each frame counts with what it costs to keep, so that many small messages keep the bound too. A
    /// message of any length fits when no other waits.
    pub(super) fn fits(&self, more: usize, gated: usize, gated_bytes: usize, bound: usize) -> bool {
        if self.bytes == 0 && gated == 0 {
            return true;
        }
        let kept = self.frames.len().saturating_add(gated).saturating_mul(size_of::<Bytes>());
        [self.bytes, gated_bytes, more].into_iter().fold(kept, usize::saturating_add) <= bound
    }

    /// Queues a message or a Close frame.
    pub(super) fn push(&mut self, frame: Bytes) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    /// Queues a pong.
    pub(super) fn push_pong(&mut self, frame: Bytes) {
        if self.pongs == 0 {
            self.overtaken = self.begun;
        }
        let end = usize::from(self.overtaken) + usize::from(self.pongs);
        if self.pongs < MAX_PONGS {
            self.frames.insert(end.min(self.frames.len()), frame);
            self.pongs += 1;
        } else if let Some(newest) = self.frames.get_mut(end - 1) {
            *newest = frame;
        }
    }

    /// Throws everything away.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes until everything is out or the connection takes no more.
    ///
    /// # Errors
    /// What the connection says; [`io::ErrorKind::WriteZero`] when it takes nothing at all.
    pub(super) fn poll_write<W: Write + Unpin>(
        &mut self,
        io: &mut W,
        cx: &mut Context<'_>,
        joined: &mut Joined,
    ) -> Poll<io::Result<()>> {
        while let Some(front) = self.frames.front() {
            let io = Pin::new(&mut *io);
            let written = if self.frames.len() == 1 {
                ready!(io.poll_write(cx, front))?
            } else if self.bytes < ENOUGH_BYTES {
                ready!(io.poll_write(cx, joined.of(&self.frames)))?
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let mut used = 0;
                for (slice, frame) in slices.iter_mut().zip(&self.frames) {
                    *slice = IoSlice::new(frame);
                    used += 1;
                }
                ready!(io.poll_write_vectored(cx, slices.get(..used).unwrap_or_default()))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        while let Some(front) = self.frames.front_mut() {
            let is_pong = self.pongs > 0 && !self.overtaken;
            let taken = front.len().min(written);
            if !is_pong {
                self.bytes -= taken;
            }
            if taken < front.len() {
                if taken > 0 {
                    front.advance(taken);
                    self.begun = true;
                }
                return;
            }
            written -= taken;
            self.begun = false;
            self.frames.pop_front();
            if is_pong {
                self.pongs -= 1;
            } else {
                self.overtaken = false;
            }
        }
        // A burst must not leave its queue behind in a connection that is idle from now on.
        self.frames = VecDeque::new();
    }
}

/// Small frames as one piece: to hand that over is cheaper than a list. It is made once for all connections that one
/// after the other have the same frames to write, as the members of a room have.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// Kept, so that no other frame can take the place of one of them in memory.
    frames: Vec<Bytes>,
    bytes: Vec<u8>,
}

impl Joined {
    fn of(&mut self, frames: &VecDeque<Bytes>) -> &[u8] {
        let same = |(a, b): (&Bytes, &Bytes)| std::ptr::eq(&**a, &**b);
        if self.frames.len() != frames.len() || !self.frames.iter().zip(frames).all(same) {
            self.clear();
            for frame in frames {
                self.bytes.extend_from_slice(frame);
                self.frames.push(frame.clone());
            }
        }
        &self.bytes
    }

    /// Lets go of the frames.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as many bytes as it is told, then nothing.
    struct Pipe {
        room: usize,
        out: Vec<u8>,
        calls: usize,
    }

    impl Write for Pipe {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(buf)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.calls += 1;
            let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            let n = all.len().min(self.room);
            if n == 0 {
                return Poll::Pending;
            }
            self.room -= n;
            self.out.extend_from_slice(&all[..n]);
            Poll::Ready(Ok(n))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Writes `room` bytes and gives what left.
    fn drain(outbox: &mut Outbox, room: usize) -> (String, usize) {
        let mut pipe = Pipe { room, out: Vec::new(), calls: 0 };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert_eq!(
            outbox.poll_write(&mut pipe, &mut cx, &mut Joined::default()).is_ready(),
            outbox.is_empty()
        );
        (String::from_utf8(pipe.out).unwrap(), pipe.calls)
    }

    #[test]
    fn partial_writes_go_on_where_they_stopped() {
        let mut outbox = Outbox::default();
        for frame in ["abc", "def", "ghi"] {
            outbox.push(frame.into());
        }
        assert_eq!(drain(&mut outbox, 4).0, "abcd");
        assert_eq!(outbox.bytes(), 5);
        assert_eq!(drain(&mut outbox, 1).0, "e");
        assert_eq!(drain(&mut outbox, 100).0, "fghi");
        assert_eq!((outbox.bytes(), outbox.frames.capacity()), (0, 0));
    }

    #[test]
    fn many_frames_leave_in_few_calls() {
        let mut outbox = Outbox::default();
        let frame = "x".repeat(200);
        for _ in 0..130 {
            outbox.push(frame.clone().into());
        }
        assert_eq!(
            drain(&mut outbox, 100_000),
            (frame.repeat(130), 2),
            "64 in a list, the rest as one piece"
        );
    }

    #[test]
    fn small_frames_leave_as_one_piece() {
        let frames = |texts: [&str; 2]| texts.map(|text| Bytes::from(text.to_owned())).into();
        let mut joined = Joined::default();
        let first: VecDeque<Bytes> = frames(["ab", "c"]);
        assert_eq!(joined.of(&first), b"abc");
        assert_eq!(joined.of(&first.clone()), b"abc");
        assert_eq!(joined.of(&frames(["d", "e"])), b"de");
        assert_eq!(joined.of(&[first[1].clone()].into()), b"c");
        joined.clear();
        assert_eq!((joined.frames.len(), joined.of(&first)), (0, &b"abc"[..]));
    }

    #[test]
    fn a_pong_overtakes_messages_but_cuts_none() {
        let mut outbox = Outbox::default();
        outbox.push("abc".into());
        outbox.push("def".into());
        assert_eq!(drain(&mut outbox, 1).0, "a");
        outbox.push_pong("1".into());
        outbox.push_pong("2".into());
        assert_eq!(outbox.bytes(), 5);
        assert_eq!(drain(&mut outbox, 3).0, "bc1");
        outbox.push_pong("34".into());
        assert_eq!(drain(&mut outbox, 2).0, "23");
        outbox.push_pong("5".into());
        assert_eq!(drain(&mut outbox, 100).0, "45def");
        assert_eq!((outbox.bytes(), outbox.pongs), (0, 0));
    }

    #[test]
    fn d13_pongs_are_bounded_and_the_newest_wins() {
        let mut outbox = Outbox::default();
        for n in 0..1_000 {
            outbox.push_pong(format!("{n} ").into());
        }
        outbox.push("message".into());
        let (out, _) = drain(&mut outbox, 1_000);
        assert_eq!(out, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 999 message");
    }

    #[test]
    fn the_bound_counts_frames_too_and_any_message_fits_alone() {
        let mut outbox = Outbox::default();
        outbox.push_pong("pong".into());
        assert!(outbox.fits(1_000_000, 0, 0, 100));
        outbox.push("x".into());
        assert!(!outbox.fits(1_000_000, 0, 0, 100));
        assert!(outbox.fits(100 - 1 - 2 * size_of::<Bytes>(), 0, 0, 100));
        assert!(!outbox.fits(100 - 2 * size_of::<Bytes>(), 0, 0, 100));
        outbox.clear();
        assert!(outbox.fits(1_000_000, 0, 0, 100));
        assert!(!outbox.fits(1_000_000, 1, 0, 100));
        assert!(!outbox.fits(50, 1, 50, 100));
    }
}
