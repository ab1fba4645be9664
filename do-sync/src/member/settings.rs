use std::time::Duration;

/// The rules for members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) grace: Duration,
    pub(crate) max_members: Option<usize>,
    pub(crate) max_sockets: Option<usize>,
    pub(crate) silent: Option<Duration>,
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
    /// The new one is refused with 409, as long as an earlier one is open. A client whose connection broke without a
    /// word is then refused until the host notices, which may take many minutes: set [`Members::silent`] too.
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

    /// With [`OnDuplicate::Reject`], after how long without an [automatic ping](crate::Room::auto_ping) a socket counts as
    /// dead: whoever comes then takes its place. Longer than the clients' interval between pings.
    ///
    /// Only pings count, and the clients of this crate send none while they hear something: in a room where much is said a
    /// member who is there seems dead by this. It is for quiet rooms, and for clients that ping all the time.
    #[must_use]
    pub fn silent(mut self, most: Duration) -> Self {
        self.silent = Some(most);
        self
    }

    /// Most members at a time. Who comes then is refused with 503.
    #[must_use]
    pub fn max_members(mut self, most: usize) -> Self {
        self.max_members = Some(most);
        self
    }

    /// Most open sockets of one member, with [`OnDuplicate::Allow`]. One more is refused with 409.
    #[must_use]
    pub fn max_sockets(mut self, most: usize) -> Self {
        self.max_sockets = Some(most);
        self
    }
}
