use super::{
    caller::{Caller, more, unexpected},
    lock_object::{Acquire, Capacity, Checked, Exhausted, OfLease, OfSemaphore, OfToken, Released, Renew},
    settings,
    wire::{Name, Nothing},
};
use crate::{
    lease::{Acquired, Grant, Holder, Release, Token},
    semaphore::{Permits, Usage},
};
use do_core::{Error, Stub};
use std::time::Duration;

/// A handle to a [`LockObject`](crate::LockObject), from anywhere.
///
/// Each change is done once: it has a request key, which the object remembers for an hour, and is repeated with the same
/// key after a passing failure; see [`Retries`](crate::Retries). Calls fail as [`Stub::fetch`] does, and after the last
/// attempt an error that [`is_indefinite`](Error::is_indefinite) says that the change may have been made: what was granted
/// then ends with its time.
///
/// `until` is by the object's clock. A caller with another clock counts its time from before the call, and ends it early.
///
/// Dropping a future does not stop the object: the change may be made.
#[derive(Debug, Clone)]
pub struct LockStub<St>(Caller<St>);

settings!(LockStub);

impl<St: Stub> LockStub<St> {
    /// Takes the lease if nobody holds it; see [`Lease::acquire`](crate::Lease::acquire).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, Error> {
        let arguments = Acquire {
            name: name.to_owned(),
            holder: holder.to_owned(),
            weight: 1,
            ttl_ms: millis(ttl),
            tell_holder: true,
        };
        match self.0.change("/lease/acquire", &arguments).await? {
            Ok(grant) => Ok(Acquired::Granted(grant)),
            Err(refused) if refused.error == "held" => Ok(Acquired::Held(more(refused)?)),
            Err(refused) => Err(unexpected(&refused)),
        }
    }

    /// [`acquire`](Self::acquire), asked again for as long as it is held, for at most `patience` of waiting in all, with
    /// growing waits up to those of [`Retries`](crate::Retries). Not a queue: whoever asks first after a release has it.
    /// Each asking has a key of its own; so this cannot be [`keyed`](Self::keyed), and ignores it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_within(
        &self,
        patience: Duration,
        name: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<Acquired, Error> {
        let asking = Self(Caller { key: None, ..self.0.clone() });
        let (mut left, mut asked) = (patience, 0_u32);
        loop {
            let acquired = asking.acquire(name, holder, ttl).await?;
            if left.is_zero() || matches!(acquired, Acquired::Granted(_)) {
                return Ok(acquired);
            }
            asked = asked.saturating_add(1);
            let wait =
                self.0.retries.wait(asked, self.0.chance.number(&self.0.stub)?).max(Duration::from_millis(1));
            let wait = wait.min(left);
            left -= wait;
            self.0.stub.delay(wait).await;
        }
    }

    /// Holds the lease for `ttl` from now on; see [`Lease::renew`](crate::Lease::renew).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn renew(&self, name: &str, token: Token, ttl: Duration) -> Result<Option<Grant>, Error> {
        self.renewed("/lease/renew", name, token, ttl).await
    }

    /// Lets go of the lease; see [`Lease::release`](crate::Lease::release).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn release(&self, name: &str, token: Token) -> Result<Release, Error> {
        self.released("/lease/release", name, token).await
    }

    /// Whether the lease is held with this token; it may be over by the time the answer comes.
    ///
    /// # Errors
    /// As [`Lease::check`](crate::Lease::check), and as [`Stub::fetch_within`].
    pub async fn check(&self, name: &str, token: Token) -> Result<bool, Error> {
        self.checked("/lease/check", name, token).await
    }

    /// Who holds the lease.
    ///
    /// # Errors
    /// As [`Lease::get`](crate::Lease::get), and as [`Stub::fetch_within`].
    pub async fn holder(&self, name: &str) -> Result<Option<Holder>, Error> {
        let found: OfLease = self.0.read("/lease/get", &Name { name: name.to_owned() }).await?;
        Ok(found.holder)
    }

    /// Says how many permits there are; see [`Semaphore::set_capacity`](crate::Semaphore::set_capacity).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn set_capacity(&self, name: &str, permits: u32) -> Result<(), Error> {
        let arguments = Capacity { name: name.to_owned(), permits };
        match self.0.change::<Nothing>("/semaphore/capacity", &arguments).await? {
            Ok(_) => Ok(()),
            Err(refused) => Err(unexpected(&refused)),
        }
    }

    /// Takes `weight` permits, or none; see [`Semaphore::acquire`](crate::Semaphore::acquire).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn acquire_permits(
        &self,
        name: &str,
        holder: &str,
        weight: u32,
        ttl: Duration,
    ) -> Result<Permits, Error> {
        let arguments = Acquire {
            name: name.to_owned(),
            holder: holder.to_owned(),
            weight,
            ttl_ms: millis(ttl),
            tell_holder: false,
        };
        match self.0.change("/semaphore/acquire", &arguments).await? {
            Ok(grant) => Ok(Permits::Granted(grant)),
            Err(refused) if refused.error == "exhausted" => {
                let Exhausted { free, until } = more(refused)?;
                Ok(Permits::Exhausted { free, until })
            }
            Err(refused) => Err(unexpected(&refused)),
        }
    }

    /// Holds permits for `ttl` from now on; see [`Semaphore::renew`](crate::Semaphore::renew).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn renew_permits(
        &self,
        name: &str,
        token: Token,
        ttl: Duration,
    ) -> Result<Option<Grant>, Error> {
        self.renewed("/semaphore/renew", name, token, ttl).await
    }

    /// Gives permits back; see [`Semaphore::release`](crate::Semaphore::release).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn release_permits(&self, name: &str, token: Token) -> Result<Release, Error> {
        self.released("/semaphore/release", name, token).await
    }

    /// Whether permits are held with this token; they may be gone by the time the answer comes.
    ///
    /// # Errors
    /// As [`Semaphore::check`](crate::Semaphore::check), and as [`Stub::fetch_within`].
    pub async fn check_permits(&self, name: &str, token: Token) -> Result<bool, Error> {
        self.checked("/semaphore/check", name, token).await
    }

    /// How a semaphore stands; `None` without a capacity.
    ///
    /// # Errors
    /// As [`Semaphore::usage`](crate::Semaphore::usage), and as [`Stub::fetch_within`].
    pub async fn usage(&self, name: &str) -> Result<Option<Usage>, Error> {
        let found: OfSemaphore = self.0.read("/semaphore/get", &Name { name: name.to_owned() }).await?;
        Ok(found.usage)
    }

    async fn renewed(
        &self,
        operation: &'static str,
        name: &str,
        token: Token,
        ttl: Duration,
    ) -> Result<Option<Grant>, Error> {
        let arguments = Renew { name: name.to_owned(), token, ttl_ms: millis(ttl) };
        match self.0.change(operation, &arguments).await? {
            Ok(grant) => Ok(Some(grant)),
            Err(refused) if refused.error == "not_held" => Ok(None),
            Err(refused) => Err(unexpected(&refused)),
        }
    }

    async fn released(&self, operation: &'static str, name: &str, token: Token) -> Result<Release, Error> {
        let arguments = OfToken { name: name.to_owned(), token };
        match self.0.change::<Released>(operation, &arguments).await? {
            Ok(Released { released: true }) => Ok(Release::Released),
            Ok(Released { released: false }) => Ok(Release::NotHeld),
            Err(refused) if refused.error == "stale" => Ok(Release::Stale),
            Err(refused) => Err(unexpected(&refused)),
        }
    }

    async fn checked(&self, operation: &'static str, name: &str, token: Token) -> Result<bool, Error> {
        let found: Checked = self.0.read(operation, &OfToken { name: name.to_owned(), token }).await?;
        Ok(found.held)
    }
}

/// One that is too long is refused by the object.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}
