//! Randomness of a caller, which may have no object and so no state: of its host, or of a seed for tests.

use crate::once::RequestKey;
use do_core::{Error, Stub};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

#[derive(Debug, Clone, Default)]
pub(super) enum Chance {
    #[default]
    Host,
    Seeded(Arc<AtomicU64>),
}

impl Chance {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    pub(super) fn number(&self, stub: &impl Stub) -> Result<u64, Error> {
        match self {
            Self::Host => stub.random(),
            // splitmix64
            Self::Seeded(state) => {
                let mut z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                Ok(z ^ (z >> 31))
            }
        }
    }

    pub(super) fn key(&self, stub: &impl Stub) -> Result<RequestKey, Error> {
        Ok(RequestKey::random(self.number(stub)?, self.number(stub)?))
    }
}
