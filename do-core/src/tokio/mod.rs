//! host
pub use crate::engine::{Clock, ManualClock, SystemClock};
