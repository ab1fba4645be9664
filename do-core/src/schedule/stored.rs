//! How the parts of a plan are stored: forms of their own, so that the types of users promise nothing of them, and what is
//! read is checked as what is made.

use super::{Missed, Retry, retry::ms};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::time::Duration;

pub(super) mod missed {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Stored {
        Once,
        Skip(u64),
        CatchUp(u32),
    }

    pub(in super::super) fn serialize<S: Serializer>(
        missed: &Missed,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let stored = match missed {
            Missed::Once => Stored::Once,
            Missed::Skip(late) => Stored::Skip(ms(*late)),
            Missed::CatchUp(most) => Stored::CatchUp(*most),
        };
        stored.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Missed, D::Error> {
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Once => Missed::Once,
            Stored::Skip(late) => Missed::Skip(Duration::from_millis(late)),
            Stored::CatchUp(most) => Missed::CatchUp(most),
        })
    }
}

pub(super) mod retry {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Stored {
        runs: u32,
        first: u64,
        longest: u64,
    }

    pub(in super::super) fn serialize<S: Serializer>(
        retry: &Retry,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let (first, longest) = retry.waits();
        Stored { runs: retry.runs(), first: ms(first), longest: ms(longest) }.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Retry, D::Error> {
        let Stored { runs, first, longest } = Stored::deserialize(deserializer)?;
        let retry = Retry::new(runs, Duration::from_millis(first)).map_err(D::Error::custom)?;
        Ok(retry.longest(Duration::from_millis(longest)))
    }
}
