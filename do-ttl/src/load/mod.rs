//! One load of a key at a time, whose value all get who asked for it meanwhile.

mod flight;

pub(crate) use flight::Loads;

use crate::{Ttl, TtlStore, store::checked};
use bytes::Bytes;
use do_core::{Failure, ObjectState};
use flight::{Joined, Told};

impl<S: ObjectState> TtlStore<S> {
    /// The value of a key; if it is not there, the one that `loader` gives, which is stored.
    ///
    /// Of all who ask for a key that is not there, one runs its loader and the others wait for its value: a thousand callers
    /// cost one load. It runs within that caller's future. When it fails, or its caller goes, exactly one of those who wait
    /// takes over with a loader of its own; an error goes to the one whose loader made it. The time counts from the end of
    /// the load.
    ///
    /// A key that is written or removed during a load is not overwritten by it: the callers get what was written, or what
    /// was loaded if nothing is there. Who asks after that does not get what was being loaded before: after
    /// [`remove`](Self::remove) nobody sees what a load read before it.
    ///
    /// A value that cannot be stored, because it is too large or the store is full, is given all the same, with a warning
    /// in the log. A key that is there does not make the caller wait: the future is ready when it is polled first.
    ///
    /// Loaders must not wait for each other in a circle. One that asks for its own key is refused.
    ///
    /// ```
    /// use do_core::prelude::*;
    /// use do_ttl::{Ttl, TtlStore};
    ///
    /// async fn rates<S: ObjectState>(cache: &TtlStore<S>, bank: &StubOf<S>) -> Result<Vec<u8>> {
    ///     let load = async || {
    ///         let answer = bank.fetch(Request::default()).await?;
    ///         Ok(answer.into_body().bytes(100_000).await?)
    ///     };
    ///     Ok(cache.get_or_insert_with("rates", Ttl::secs(60), load).await?.to_vec())
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of the loader. [`ErrorKind::Limit`](do_core::ErrorKind::Limit) for a key that is too large, and
    /// [`ErrorKind::Invalid`](do_core::ErrorKind::Invalid) for a loader that asks for its own key; as
    /// [`SqlStorage::exec`](do_core::SqlStorage::exec) when looking for it.
    ///
    /// # Cancellation
    /// Dropped, the load ends, and one of those who wait takes over.
    pub async fn get_or_insert_with<V: Into<Bytes>>(
        &self,
        key: &str,
        ttl: impl Into<Ttl>,
        loader: impl AsyncFnOnce() -> Result<V, Failure>,
    ) -> Result<Bytes, Failure> {
        let ttl = ttl.into();
        self.load(key, async || Ok((loader().await?.into(), ttl))).await
    }

    /// [`get_or_insert_with`](Self::get_or_insert_with), where the loader says with the value how long it is good for. With
    /// a time that is over, only those get it who wait for it already.
    ///
    /// # Errors
    /// As [`get_or_insert_with`](Self::get_or_insert_with).
    ///
    /// # Cancellation
    /// As [`get_or_insert_with`](Self::get_or_insert_with).
    pub async fn get_or_load<V: Into<Bytes>, T: Into<Ttl>>(
        &self,
        key: &str,
        loader: impl AsyncFnOnce() -> Result<(V, T), Failure>,
    ) -> Result<Bytes, Failure> {
        let loader = async || {
            let (value, ttl) = loader().await?;
            Ok((value.into(), ttl.into()))
        };
        self.load(key, loader).await
    }

    async fn load(
        &self,
        key: &str,
        loader: impl AsyncFnOnce() -> Result<(Bytes, Ttl), Failure>,
    ) -> Result<Bytes, Failure> {
        checked(key, Bytes::new())?;
        let lead = loop {
            if let Some(value) = self.get(key)? {
                return Ok(value);
            }
            match self.shared.loads.join(key)? {
                Joined::Lead(lead) => break lead,
                Joined::Wait(wait) => match wait.told().await {
                    Told::Loaded(value) => return Ok(value),
                    // Nothing is there still: it would have been told to begin anew.
                    Told::Lead(lead) => break lead,
                    Told::Again => {}
                },
            }
        };
        let (loaded, ttl) = lead.run(loader()).await?;
        let value = if lead.is_outdated() {
            self.get(key)?.unwrap_or(loaded)
        } else {
            if let Err(error) = self.put(key, loaded.clone(), ttl) {
                let object = self.sweeper.0.state.id();
                tracing::warn!(%object, store = self.name(), key, %error, "what was loaded could not be stored");
            }
            loaded
        };
        lead.end(value.clone());
        Ok(value)
    }

    /// A key was written or removed: what is being loaded for it is out of date.
    pub(crate) fn changed(&self, key: &str) {
        self.shared.loads.changed(key);
    }

    /// Every key was removed.
    pub(crate) fn all_changed(&self) {
        self.shared.loads.all_changed();
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
