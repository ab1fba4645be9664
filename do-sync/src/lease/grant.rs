use do_core::{Error, ErrorKind, Timestamp, Value, limits::SQL_INTEGER_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A fencing token: a later grant has a larger one, also after releases, expiries, evictions, crashes and steps of the
/// clock.
///
/// Send it along with every write to what the lease guards, and let that refuse a token that is smaller than the largest
/// one that it has seen: only this stops a holder that was paused until after its lease had expired.
///
/// Tokens of one object and pattern grow by 1, from the milliseconds of the Unix time of the first grant: so they go on
/// growing after [`delete_all`](do_core::ObjectState::delete_all), unless the clock was set back meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Token(i64);

impl Token {
    /// One that was stored as a number.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for what no token can be: not positive, or beyond 2^53-1.
    pub fn new(number: i64) -> Result<Self, Error> {
        if (1..=SQL_INTEGER_MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(Error::new(ErrorKind::Invalid, format!("{number} is no fencing token")))
    }

    /// Its number, from 1 to 2^53-1.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for Token {
    type Error = Error;

    fn try_from(number: i64) -> Result<Self, Error> {
        Self::new(number)
    }
}

impl From<Token> for i64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl From<Token> for Value {
    fn from(token: Token) -> Self {
        Self::Integer(token.0)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a holder has: until when, by the object's clock, and with which token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// For what the lease guards, and to renew and release it.
    pub token: Token,
    /// The first moment at which it is not held any more.
    pub until: Timestamp,
}

/// Why a lease was not granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// When it is over, if it is neither renewed nor released.
    pub until: Timestamp,
    /// Who holds it. Over HTTP only for whoever asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// Who holds a lease, or a part of a semaphore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The name that it gave.
    pub holder: String,
    /// Its fencing token.
    pub token: Token,
    /// The first moment at which it does not hold it any more.
    pub until: Timestamp,
    /// How many permits it holds; 1 of a lease.
    pub weight: u32,
}

/// What was held until its time ran out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// Of the lease or the semaphore.
    pub name: String,
    /// Who held it.
    pub held: Holder,
}

/// What became of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// It was held with this token, and is not any more.
    Released,
    /// Nobody holds it with this token: it was released before, or expired. Nothing is changed.
    NotHeld,
    /// A lease that somebody else holds: the token is an old one. Nothing is changed.
    Stale,
}
