/// The bounds of what one socket may send.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbound {
    pub(crate) max_bytes: usize,
    /// Messages per second, and how many at once.
    pub(crate) rate: Option<(f64, u32)>,
    pub(crate) on_excess: OnExcess,
    pub(crate) on_malformed: OnMalformed,
}

/// What happens to a message that comes too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnExcess {
    /// It is ignored.
    #[default]
    Drop,
    /// The socket closes with 1008.
    Close,
}

/// What happens to a message that is not of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnMalformed {
    /// It is logged and ignored.
    #[default]
    Ignore,
    /// The socket closes with 1007, or with 1003 when the message is binary.
    Close,
}

impl Default for Inbound {
    fn default() -> Self {
        Self {
            max_bytes: do_core::limits::MESSAGE_BYTES,
            rate: None,
            on_excess: OnExcess::Drop,
            on_malformed: OnMalformed::Ignore,
        }
    }
}

impl Inbound {
    /// As long as the platform allows, as often as they like.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest message; a longer one closes the socket with 1009.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Most messages per second on the average, and at once.
    #[must_use]
    pub fn rate(mut self, per_second: f64, burst: u32) -> Self {
        self.rate = Some((per_second, burst));
        self
    }

    /// What happens to one that comes too soon.
    #[must_use]
    pub fn on_excess(mut self, on_excess: OnExcess) -> Self {
        self.on_excess = on_excess;
        self
    }

    /// What happens to one of another shape.
    #[must_use]
    pub fn on_malformed(mut self, on_malformed: OnMalformed) -> Self {
        self.on_malformed = on_malformed;
        self
    }
}
