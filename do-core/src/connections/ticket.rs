/// Stands for one stream that [joined](super::Connections::stream_joined) and has not left. It cannot be copied, so that
/// nobody leaves twice, and does nothing when it is dropped: that may happen outside of the object's turns.
#[must_use = "a stream counts until its ticket is given back to `stream_left`"]
#[derive(Debug, PartialEq, Eq)]
pub struct StreamTicket {
    /// Never given twice by one registry.
    pub(super) serial: u64,
}

impl StreamTicket {
    /// Whoever asks has used it up.
    pub(super) fn into_serial(self) -> u64 {
        self.serial
    }
}
