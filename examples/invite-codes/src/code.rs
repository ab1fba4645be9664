//! Codes that nobody guesses.

use do_core::prelude::*;

/// Without those that are read for another.
const LETTERS: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// 80 bits of the system's randomness: `7G2K-M4QX-0TZ9-EW3B`.
///
/// # Errors
/// [`ErrorKind::Platform`] when the system has none.
pub(crate) fn random() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::new(ErrorKind::Platform, error.to_string()))?;
    let letters = bytes.map(|byte| LETTERS.get(usize::from(byte % 32)).copied().map_or('0', char::from));
    let groups: Vec<String> = letters.chunks(4).map(|group| group.iter().collect()).collect();
    Ok(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_four_groups_of_letters_and_each_is_another_one() {
        let codes: std::collections::BTreeSet<_> = (0..1_000).map(|_| random().unwrap()).collect();
        assert_eq!(codes.len(), 1_000);
        for code in codes {
            let groups: Vec<_> = code.split('-').collect();
            assert_eq!(groups.iter().map(|group| group.len()).collect::<Vec<_>>(), [4; 4], "{code}");
            assert!(code.bytes().all(|byte| byte == b'-' || LETTERS.contains(&byte)), "{code}");
        }
    }
}
