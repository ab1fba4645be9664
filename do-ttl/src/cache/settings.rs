use crate::{Pace, Settings, Ttl};

/// The settings of a [`TtlCache`](crate::TtlCache), as a type, because a host makes objects without arguments. `()` has the
/// defaults.
///
/// ```
/// use do_core::prelude::*;
/// use do_ttl::{CacheSettings, Settings, Ttl, TtlCache};
///
/// struct Pages;
///
/// impl CacheSettings for Pages {
///     fn settings() -> Settings {
///         Settings::new().max_entries(10_000).max_bytes(64 << 20)
///     }
///     fn ttl() -> Ttl {
///         Ttl::secs(300).jitter(10)
///     }
/// }
///
/// do_core::export!(PageCache = do_ttl::TtlCache<_, Pages>);
/// # fn main() {}
/// ```
pub trait CacheSettings: 'static {
    /// Those of its store. Without limits by default. [`Settings::notify`] is ignored: the object has nobody to tell.
    fn settings() -> Settings {
        Settings::new()
    }

    /// Those of its sweeper.
    fn pace() -> Pace {
        Pace::new()
    }

    /// The time of what is put without one. [`Ttl::NEVER`] by default.
    fn ttl() -> Ttl {
        Ttl::NEVER
    }
}

impl CacheSettings for () {}
