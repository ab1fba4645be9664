//! Times and values as commands have them in JSON, and how what a store gave is told.

use bytes::Bytes;
use do_core::Timestamp;
use do_ttl::{Entry, Put, PutIfAbsent, Swap, Ttl};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// A [`Ttl`]: `null`, a number of ms, or one of these.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GivenTtl {
    /// `null`.
    Never(()),
    /// Milliseconds.
    Millis(i64),
    /// `{"until": ms}`, a moment.
    Until {
        /// In ms.
        until: i64,
    },
    /// `{"sliding": ms}`, and `max_age` where there is one.
    Sliding {
        /// In ms.
        sliding: u64,
        /// In ms.
        #[serde(default)]
        max_age: Option<u64>,
    },
    /// `{"jitter": percent, "of": ms}`.
    Jitter {
        /// In percent.
        jitter: u8,
        /// In ms.
        of: i64,
    },
}

impl From<GivenTtl> for Ttl {
    fn from(given: GivenTtl) -> Self {
        match given {
            GivenTtl::Never(()) => Self::NEVER,
            GivenTtl::Millis(ms) => Self::millis(ms),
            GivenTtl::Until { until } => Self::until(Timestamp::from_millis(until)),
            GivenTtl::Sliding { sliding, max_age } => {
                let made = Self::sliding(Duration::from_millis(sliding));
                max_age.map_or(made, |ms| made.max_age(Duration::from_millis(ms)))
            }
            GivenTtl::Jitter { jitter, of } => Self::millis(of).jitter(jitter),
        }
    }
}

/// A value: a text, a list of bytes, or `{"filled": length}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GivenValue {
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// So many dots.
    Filled {
        /// How many.
        filled: usize,
    },
}

impl From<GivenValue> for Bytes {
    fn from(given: GivenValue) -> Self {
        match given {
            GivenValue::Text(text) => text.into(),
            GivenValue::Bytes(bytes) => bytes.into(),
            GivenValue::Filled { filled } => vec![b'.'; filled].into(),
        }
    }
}

/// Longer values are told as `{"length": n}`.
const TOLD: usize = 4_096;

/// A value: a text where it is one, else a list of bytes.
pub(crate) fn told_value(value: &Bytes) -> Value {
    if value.len() > TOLD {
        return json!({"length": value.len()});
    }
    std::str::from_utf8(value).map_or_else(|_| json!(&value[..]), Value::from)
}

/// `{value, expires, version}`, or `null`.
pub(crate) fn told_entry(entry: Option<&Entry>) -> Value {
    entry.map_or(Value::Null, |entry| {
        json!({"value": told_value(&entry.value), "expires": entry.expires, "version": entry.version})
    })
}

/// `{version, expires}`, or `"removed"`.
pub(crate) fn told_put(put: Put) -> Value {
    match put {
        Put::Stored { version, expires } => json!({"version": version, "expires": expires}),
        Put::Removed => json!("removed"),
    }
}

/// `{"done": put}` or `{"present": entry}`.
pub(crate) fn told_put_if_absent(put: &PutIfAbsent) -> Value {
    match put {
        PutIfAbsent::Done(put) => json!({"done": told_put(*put)}),
        PutIfAbsent::Present(entry) => json!({"present": told_entry(Some(entry))}),
    }
}

/// `{"done": put}` or `{"differs": entry}`.
pub(crate) fn told_swap(swap: &Swap) -> Value {
    match swap {
        Swap::Done(put) => json!({"done": told_put(*put)}),
        Swap::Differs(entry) => json!({"differs": told_entry(entry.as_ref())}),
    }
}
