use std::time::Duration;

/// What the host is given at most in advance, unless said otherwise: enough to keep a fast connection busy between two
/// looks of the room.
const WINDOW: usize = 64 * 1_024;

/// The bounds of what waits for one socket.
///
/// What waits is what the host still holds and what the room keeps back. The room gives the host a
/// [window](Self::window) in advance and keeps the rest, because what the host has cannot be left out any more: the
/// policy acts on what the room keeps. The bytes of a message for many sockets are in memory once.
///
/// How it is known what the host holds:
/// - Natively and in the test kit the host tells, commits that are under way included. Its own bound
///   (`Builder::outbox_bytes`, 1 MiB) stays as the last defence; the room does not run into it.
/// - On Workers the runtime buffers without a bound. Where it has `bufferedAmount`, that tells.
/// - Where it has not, the clients tell: those who came by `Room::enter` are given a [credit](Self::credit), and
///   acknowledge what they have read. What they had before the object last left memory is forgiven. A client that
///   acknowledges more than it reads is not found out. Sockets that came by [`Room::join`](crate::Room::join) do not
///   acknowledge: there nothing is bounded.
///
/// # Send buffers
/// Whatever the host holds, the operating system holds more: megabytes for each connection that is not read, before the
/// host learns of it. Whoever makes the listener sets how much, before it listens; accepted sockets inherit it:
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let socket = tokio::net::TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// socket.set_send_buffer_size(64 * 1_024)?; // SO_SNDBUF; Linux doubles it for its own book-keeping
/// socket.bind("127.0.0.1:0".parse()?)?;
/// let listener = socket.listen(1_024)?;
/// // From here on as with any other: `host.serve(listener, ..)`, `axum::serve(listener, ..)`.
/// # drop(listener);
/// # Ok(()) }
/// ```
///
/// It bounds what one connection can have on its way, so that a fast one over a long distance is slower: 64 KiB are
/// enough for 5 Mbit/s at 100 ms.
///
/// # When the object goes
/// What the room keeps back is in memory, and keeps the object there, for as long as peers read, and for
/// [`stall`](Self::stall) when they do not. When the object is reset or the process dies, it is lost with the sockets;
/// clients that resume get what was published. On Workers a peer that stands still may stay connected after the 1013,
/// with what the runtime holds for it, until the runtime ends it; natively that is ten seconds (rule D24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    pub(crate) max_bytes: usize,
    pub(crate) max_messages: usize,
    pub(crate) window: Option<usize>,
    pub(crate) credit: Option<u64>,
    pub(crate) stall: Duration,
    pub(crate) on_full: OnFull,
}

/// What happens to a message for which there is no room.
///
/// Published values and what else is numbered are never left out: when one does not fit, whatever the policy, the
/// socket closes with 1013, and its client comes back and resumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// The socket closes with 1013; its client comes back and resumes.
    #[default]
    Close,
    /// It is left out.
    DropNewest,
    /// The oldest that wait are left out for it. When all of them together would not be enough, it is left out itself.
    DropOldest,
    /// Of messages with the same [key](crate::Broadcast::key) only the latest waits, behind all that were sent before
    /// it. When it is full nevertheless, the socket closes.
    LatestPerKey,
}

impl Default for Outbound {
    fn default() -> Self {
        Self {
            max_bytes: 256 * 1_024,
            max_messages: 1_000,
            window: None,
            credit: None,
            stall: Duration::from_secs(30),
            on_full: OnFull::Close,
        }
    }
}

impl Outbound {
    /// 256 KiB, 1,000 messages, 30 s, and then [`OnFull::Close`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Most bytes that wait, what the host holds included; hosts may count a few bytes of framing for each message.
    ///
    /// What is published must not be longer than half of it: [`Room::publish`](crate::Room::publish) fails then, so that
    /// with 0 nothing can be. A message of [`Room::broadcast`](crate::Room::broadcast) that would not even fit beside a full
    /// window waits alone, whatever its length. What a newcomer is
    /// shown of the history may exceed it, and is bounded by the [`History`](crate::History).
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Most messages that the room keeps back. At least one.
    #[must_use]
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.max_messages = messages;
        self
    }

    /// Most bytes that the host is given in advance; one message always is. With less the policy acts sooner, with
    /// more a fast connection rests less. Default: a quarter of [`max_bytes`](Self::max_bytes), at most 64 KiB.
    #[must_use]
    pub fn window(mut self, bytes: usize) -> Self {
        self.window = Some(bytes);
        self
    }

    /// Goes by what clients acknowledge, wherever they do, also where the host tells what it holds: it knows nothing
    /// of what waits in the buffers of operating systems on the way, which may be megabytes. So many bytes may be on
    /// their way at a time. Default: where the host does not tell, the [window](Self::window).
    #[must_use]
    pub fn credit(mut self, bytes: u64) -> Self {
        self.credit = Some(bytes);
        self
    }

    /// How long a peer may read nothing while the room keeps messages back for it; then its socket closes with 1013.
    /// It is noticed up to a quarter of a second late. A peer that has not read less than a window is not closed.
    #[must_use]
    pub fn stall(mut self, stall: Duration) -> Self {
        self.stall = stall;
        self
    }

    /// What happens when a bound is reached.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    pub(crate) fn window_bytes(&self) -> usize {
        self.window.unwrap_or(WINDOW.min(self.max_bytes / 4)).min(self.max_bytes)
    }
}
