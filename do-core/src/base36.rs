//! For patterns.

use std::{fmt, iter};

/// A number as short text, of digits and lower case letters.
#[derive(Debug, Clone, Copy)]
pub struct Base36(pub u64);

impl fmt::Display for Base36 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = iter::successors(Some(self.0), |n| Some(n / 36).filter(|rest| *rest > 0));
        let digit = |n: u64| char::from_digit(u32::try_from(n % 36).unwrap_or(0), 36).unwrap_or('0');
        let digits: Vec<char> = parts.map(digit).collect();
        digits.iter().rev().try_for_each(|digit| fmt::Write::write_char(f, *digit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_a_short_name() {
        let name = |n| Base36(n).to_string();
        assert_eq!([0, 35, 36, u64::MAX].map(name), ["0", "z", "10", "3w5e11264sgsf"]);
    }
}
