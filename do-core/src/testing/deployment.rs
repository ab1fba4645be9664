//! The two configurations that a host under test is started with. The Worker's two say the same as `wrangler.toml`.

/// One of two deployments, the second of which follows the first on the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployment {
    /// The namespaces `PROBE`, `OTHER`, `BEFORE` and `GONE`, which the migration `v1` creates.
    First,
    /// After that, `v2` deletes `GONE`, renames `BEFORE` to `AFTER` and creates `NEW`, and `v3` creates `GONE` again.
    Second,
}

impl Deployment {
    /// The namespaces. The class of each is the [`Probe`](super::Probe).
    pub fn namespaces(self) -> &'static [&'static str] {
        match self {
            Self::First => &["PROBE", "OTHER", "BEFORE", "GONE"],
            Self::Second => &["PROBE", "OTHER", "AFTER", "GONE", "NEW"],
        }
    }

    /// The variable `DEPLOYMENT`, which tells objects which one it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }

    /// The migrations up to it.
    #[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
    pub fn migrations(self) -> Vec<crate::tokio::Migration> {
        use crate::tokio::Migration;
        let first = Migration::new("v1").created("PROBE").created("OTHER").created("BEFORE").created("GONE");
        let second = Migration::new("v2").deleted("GONE").renamed("BEFORE", "AFTER").created("NEW");
        match self {
            Self::First => vec![first],
            Self::Second => vec![first, second, Migration::new("v3").created("GONE")],
        }
    }
}
