//! Randomness of a caller, which may have no object and so no state: of the system, or of a seed for tests.

use crate::once::RequestKey;
use do_core::{Error, ErrorKind};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

#[derive(Debug, Clone, Default)]
pub(super) enum Chance {
    #[default]
    System,
    Seeded(Arc<AtomicU64>),
}

impl Chance {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    pub(super) fn number(&self) -> Result<u64, Error> {
        match self {
            Self::System => getrandom::u64().map_err(|error| {
                Error::new(ErrorKind::Platform, format!("the system has no randomness: {error}"))
            }),
            // splitmix64
            Self::Seeded(state) => {
                let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                Ok(z ^ (z >> 31))
            }
        }
    }

    pub(super) fn key(&self) -> Result<RequestKey, Error> {
        Ok(RequestKey::random(self.number()?, self.number()?))
    }
}
