//! Counters and locks as objects of their own, and typed stubs for them.
//!
//! The stub makes a request key for each call and keeps it over its attempts, and the object does what has that key once:
//! so a call whose answer was lost can be made again without harm, which is all that exactness over a network needs.

mod caller;
mod counter_object;
mod counter_stub;
mod lock_object;
mod lock_stub;
mod wire;

pub use counter_object::CounterObject;
pub use counter_stub::CounterStub;
pub use lock_object::LockObject;
pub use lock_stub::LockStub;

use crate::once::RequestKey;
use do_core::{Chance, Error, Stub};

fn random_key(chance: &Chance, stub: &impl Stub) -> Result<RequestKey, Error> {
    Ok(RequestKey::random(chance.number(stub)?, chance.number(stub)?))
}

/// The settings that stubs share.
macro_rules! settings {
    ($stub:ident) => {
        impl<St: do_core::Stub> $stub<St> {
            /// Speaks to an object. Sends nothing.
            pub fn new(stub: St) -> Self {
                Self(Caller::new(stub))
            }

            /// How often and when it repeats a call that failed.
            #[must_use]
            pub fn retries(self, retries: do_core::Retries) -> Self {
                Self(Caller { retries, ..self.0 })
            }

            /// Makes request keys and waits of a seed instead of the system's randomness, so that a test can be repeated.
            /// Two stubs with one seed make the same keys, and then one does nothing for the other's sake: inside an object
            /// give it [`ObjectState::random`](do_core::ObjectState::random).
            #[must_use]
            pub fn seed(self, seed: u64) -> Self {
                Self(Caller { chance: do_core::Chance::seeded(seed), ..self.0 })
            }

            /// The same stub with a request key of the caller's, for one change: after an error that
            /// [may have taken effect](do_core::Error::is_indefinite) the same call with the same key finds out, or does
            /// it.
            #[must_use]
            pub fn keyed(&self, key: crate::RequestKey) -> Self {
                Self(Caller { key: Some(key), ..self.0.clone() })
            }

            /// The stub that it calls.
            pub fn stub(&self) -> &St {
                &self.0.stub
            }
        }
    };
}
use settings;
