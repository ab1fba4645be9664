use std::time::Duration;

/// The rules for members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) grace: Duration,
    pub(crate) max_members: Option<usize>,
    pub(crate) max_sockets: Option<usize>,
}

/// What happens when a member who is there comes with one more socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The earlier ones close with 4500: another connection took over.
    #[default]
    Replace,
    /// All stay.
    Allow,
    /// The new one is refused with 409.
    Reject,
}

impl Members {
    /// A newer socket replaces an older one, a member who has none has left at once, and there are as many as come.
    pub fn new() -> Self {
        Self::default()
    }

    /// What happens when a member who is there comes with one more socket.
    #[must_use]
    pub fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = on_duplicate;
        self
    }

    /// How long a member without a socket is still there: whoever comes back within it has never left. Needs an
    /// [alarm](crate::Room::alarm).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Most members at a time.
    #[must_use]
    pub fn max_members(mut self, most: usize) -> Self {
        self.max_members = Some(most);
        self
    }

    /// Most open sockets of one member, with [`OnDuplicate::Allow`].
    #[must_use]
    pub fn max_sockets(mut self, most: usize) -> Self {
        self.max_sockets = Some(most);
        self
    }
}
