//! Stand-in.
use crate::{Error, ErrorKind, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cadence {
    Every { every: i64, anchor: i64 },
}

impl Cadence {
    pub(super) fn every(every: Duration, anchor: Timestamp) -> Result<Self, Error> {
        let ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        if ms == 0 {
            return Err(Error::new(ErrorKind::Invalid, "an interval of nothing"));
        }
        Ok(Self::Every { every: ms, anchor: anchor.as_millis() })
    }
    pub(super) fn anchor(&self, interval: Duration) -> Option<Timestamp> {
        match self {
            Self::Every { every, anchor } if u128::try_from(*every).ok() == Some(interval.as_millis()) => {
                Some(Timestamp::from_millis(*anchor))
            }
            _ => None,
        }
    }
    pub(super) fn next_after(&self, t: Timestamp) -> Result<Option<Timestamp>, Error> {
        let Self::Every { every, anchor } = self;
        let k = (t.as_millis() - anchor).div_euclid(*every) + 1;
        Ok(Some(Timestamp::from_millis(anchor + k * every)))
    }
    pub(super) fn latest(
        &self,
        after: Timestamp,
        until: Timestamp,
        n: usize,
    ) -> Result<Vec<Timestamp>, Error> {
        let Self::Every { every, anchor } = self;
        let last = anchor + (until.as_millis() - anchor).div_euclid(*every) * every;
        let mut out: Vec<_> = (0..n as i64)
            .map(|k| Timestamp::from_millis(last - k * every))
            .take_while(|t| *t > after)
            .collect();
        out.reverse();
        Ok(out)
    }
    pub(super) fn count(&self, after: Timestamp, until: Timestamp, most: u64) -> Result<u64, Error> {
        let Self::Every { every, anchor } = self;
        let n =
            (until.as_millis() - anchor).div_euclid(*every) - (after.as_millis() - anchor).div_euclid(*every);
        Ok((n.max(0) as u64).min(most))
    }
}
