use crate::base36::Base36;
use crate::{Error, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Cow, fmt, str::FromStr};

/// A place in a sequence of messages, such as a room's or a feed's: the number of a message, and the epoch in which it was
/// given. Written `epoch-seq`, in short ASCII.
///
/// Two of different epochs cannot be compared: the sequence began anew between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    epoch: u64,
    seq: u64,
}

impl Position {
    /// For patterns.
    pub const fn new(epoch: u64, seq: u64) -> Self {
        Self { epoch, seq }
    }

    /// What it is a number of: drawn at random when a sequence begins.
    pub const fn epoch(self) -> u64 {
        self.epoch
    }

    /// The number; 0 before the first message.
    pub const fn seq(self) -> u64 {
        self.seq
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", Base36(self.epoch), self.seq)
    }
}

/// As text.
impl Serialize for Position {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// From text.
impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// As it is printed; leading zeros are taken too.
impl FromStr for Position {
    type Err = Error;

    /// # Errors
    /// [`ErrorKind::Invalid`], which the sender of a request is told by 400 when nobody handles it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::new(ErrorKind::Invalid, "a position is written epoch-seq").of_request();
        let (epoch, seq) = text.split_once('-').ok_or_else(wrong)?;
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        };
        if !plain(epoch) || !plain(seq) {
            return Err(wrong());
        }
        Ok(Self {
            epoch: u64::from_str_radix(epoch, 36).map_err(|_| wrong())?,
            seq: seq.parse().map_err(|_| wrong())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        for (epoch, seq) in [(0, 0), (35, 1), (36, 17), (u64::MAX, u64::MAX)] {
            let position = Position { epoch, seq };
            assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
            let json = serde_json::to_string(&position).unwrap();
            assert_eq!(serde_json::from_str::<Position>(&json).unwrap(), position);
        }
        assert_eq!(Position { epoch: 36, seq: 7 }.to_string(), "10-7");
        for wrong in [
            "",
            "-",
            "1",
            "1-",
            "-1",
            "1-+1",
            "+1-1",
            "A-1",
            "1-1-1",
            "zzzzzzzzzzzzzz-1",
            "1-99999999999999999999",
        ] {
            assert_eq!(wrong.parse::<Position>().unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
        }
    }
}
