use super::{
    director::Director,
    disk::Disk,
    kit::Kit,
    net::Net,
    world::{Parts, World},
};
use crate::{
    DurableObject, Error, ErrorKind, Secret, Timestamp,
    engine::{Clock, ManualClock},
    tokio::{self, HostState, Manifest, Migration, Plan, ShardQueue},
};
use std::{
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Sets up a [`Kit`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    host: tokio::Builder,
    seed: Option<u64>,
    now: Timestamp,
}

/// The seed that the variable `DO_KIT_SEED` names.
///
/// # Errors
/// [`ErrorKind::Invalid`] when it names none.
pub(super) fn seed_of_environment() -> Result<Option<u64>, Error> {
    std::env::var_os("DO_KIT_SEED").map(|text| seed_of(&text.to_string_lossy())).transpose()
}

fn seed_of(text: &str) -> Result<u64, Error> {
    text.trim().parse().map_err(|_| {
        Error::new(
            ErrorKind::Invalid,
            format!("DO_KIT_SEED is {text:?}: it must be a number from 0 to 2^64 - 1"),
        )
    })
}

/// Objects in memory before those that are idle leave early. On a host that depends on how many files may be open;
/// here a run must be the same on every machine.
const AWAKE: usize = 64;

/// 2027-01-15: a time that is as good as any, and the same for every run.
const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

impl Builder {
    pub(super) fn new() -> Self {
        Self { host: tokio::Host::builder("."), seed: None, now: BEGIN }
    }

    /// Registers the class `O` under the name of its namespace, as [`tokio::Builder::object`] does.
    pub fn object<O: DurableObject<HostState>>(mut self, namespace: impl Into<String>) -> Self {
        self.host = self.host.object::<O>(namespace);
        self
    }

    /// What decides everything that is left open. Default: 0. The variable `DO_KIT_SEED` goes before the default, not
    /// before this.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The time at the beginning. Default: 2027-01-15T08:00Z.
    pub fn now(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// As [`tokio::Builder::idle`].
    pub fn idle(mut self, idle: Duration) -> Self {
        self.host = self.host.idle(idle);
        self
    }

    /// As [`tokio::Builder::background`].
    pub fn background(mut self, most: Duration) -> Self {
        self.host = self.host.background(most);
        self
    }

    /// As [`tokio::Builder::message_bytes`].
    pub fn message_bytes(mut self, bytes: usize) -> Self {
        self.host = self.host.message_bytes(bytes);
        self
    }

    /// As [`tokio::Builder::outbox_bytes`].
    pub fn outbox_bytes(mut self, bytes: usize) -> Self {
        self.host = self.host.outbox_bytes(bytes);
        self
    }

    /// As [`tokio::Builder::events_under_way`].
    pub fn events_under_way(mut self, most: usize) -> Self {
        self.host = self.host.events_under_way(most);
        self
    }

    /// As [`tokio::Builder::local_sql_limits`].
    pub fn local_sql_limits(mut self) -> Self {
        self.host = self.host.local_sql_limits();
        self
    }

    /// As [`tokio::Builder::var`].
    pub fn var(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.host = self.host.var(name, value);
        self
    }

    /// As [`tokio::Builder::secret`].
    pub fn secret(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.host = self.host.secret(name, value);
        self
    }

    /// As [`tokio::Builder::migrations`]; [`Kit::deploy`] applies them to what the world has.
    pub fn migrations(mut self, migrations: impl IntoIterator<Item = Migration>) -> Self {
        self.host = self.host.migrations(migrations);
        self
    }

    /// Begins a world with nothing in it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a namespace that is named wrongly or twice, when the migrations do not fit, and when
    /// `DO_KIT_SEED` is no number;
    /// [`ErrorKind::Platform`] when there is no room for temporary files.
    pub fn start(self) -> Result<Kit, Error> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => seed_of_environment()?.unwrap_or(0),
        };
        let clock = ManualClock::at(self.now);
        let director = Rc::new(Director::new(seed));
        let (queue, plan) = self.plan(seed, &Manifest::empty(), &clock)?;
        let disk = Disk::new(seed, Rc::clone(&director)).map_err(|error| {
            Error::new(ErrorKind::Platform, format!("no temporary files: {error}")).with_source(error)
        })?;
        director.at(clock.elapsed());
        let net = Rc::new(Net::new(plan.limits, Rc::clone(&director)));
        Ok(Kit::new(World::new(Parts { seed, clock, net, director, disk, queue, plan })))
    }

    /// The objects without threads, over what the data directory remembers.
    pub(super) fn plan(
        self,
        seed: u64,
        before: &Manifest,
        clock: &ManualClock,
    ) -> Result<(Arc<ShardQueue>, Plan), Error> {
        let ids = Mutex::new(fastrand::Rng::with_seed(seed.rotate_left(32)));
        let unique = Box::new(move |bytes: &mut [u8]| {
            ids.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes);
            Ok(())
        });
        let queue = ShardQueue::new();
        let plan = self.host.shards(1).awake_objects(AWAKE).clock(clock.clone()).plan(
            before,
            vec![Arc::clone(&queue)],
            unique,
        )?;
        Ok((queue, plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_that_is_no_number_is_said() {
        assert_eq!(seed_of(" 18446744073709551615 ").unwrap(), u64::MAX);
        for text in ["", "0x1f", "-1", "18446744073709551616"] {
            let error = seed_of(text).unwrap_err();
            let told = format!("DO_KIT_SEED is {text:?}: it must be a number from 0 to 2^64 - 1");
            assert_eq!((error.kind(), error.to_string()), (ErrorKind::Invalid, told));
        }
    }
}
