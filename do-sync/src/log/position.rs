use do_core::{Error, ErrorKind};
use serde::{Serialize, Serializer};
use std::{fmt, str::FromStr};

/// A place in a room's sequence: the number of a message, and the epoch in which it was given. Written `epoch-seq`, in
/// ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
}

impl Position {
    /// The number; 0 before the first message.
    pub const fn seq(self) -> u64 {
        self.seq
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut digits, mut n) = ([0_u8; 13], self.epoch);
        let mut at = digits.len();
        loop {
            at -= 1;
            if let (Some(digit), Some(letter)) =
                (digits.get_mut(at), b"0123456789abcdefghijklmnopqrstuvwxyz".get((n % 36) as usize))
            {
                *digit = *letter;
            }
            n /= 36;
            if n == 0 || at == 0 {
                break;
            }
        }
        let epoch = digits.get(at..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or("0");
        write!(f, "{epoch}-{}", self.seq)
    }
}

/// As text.
impl Serialize for Position {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The text is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a position is written epoch-seq")]
pub struct NoPosition;

/// The text comes from clients: the error is one of the request, which is answered with 400.
impl From<NoPosition> for Error {
    fn from(error: NoPosition) -> Self {
        Self::new(ErrorKind::Invalid, error.to_string()).of_request()
    }
}

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (epoch, seq) = text.split_once('-').ok_or(NoPosition)?;
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        };
        if !plain(epoch) || !plain(seq) {
            return Err(NoPosition);
        }
        Ok(Self {
            epoch: u64::from_str_radix(epoch, 36).map_err(|_| NoPosition)?,
            seq: seq.parse().map_err(|_| NoPosition)?,
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
            assert_eq!(position.to_string().parse(), Ok(position), "{position}");
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
            assert_eq!(wrong.parse::<Position>(), Err(NoPosition), "{wrong}");
        }
    }
}
