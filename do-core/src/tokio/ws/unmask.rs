//! The mask that every client frame carries (RFC 6455 section 5.3).

/// Removes the mask in place and turns `key` on, so that the next piece of the same frame continues rightly.
pub(super) fn unmask(data: &mut [u8], key: &mut [u8; 4]) {
    let [a, b, c, d] = *key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    // Eight bytes at a time, which the compiler makes wider still.
    let (words, rest) = data.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= mask;
    }
    key.rotate_left(data.len() % 4);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_what_byte_by_byte_gives() {
        let key = [0x12, 0x34, 0xAB, 0xF0];
        let masked: Vec<u8> = (0..67_u8).collect();
        let expected: Vec<u8> =
            masked.iter().zip(key.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        for split in 0..=masked.len() {
            let (mut data, mut turned) = (masked.clone(), key);
            let (first, second) = data.split_at_mut(split);
            unmask(first, &mut turned);
            unmask(second, &mut turned);
            assert_eq!(data, expected, "{split}");
        }
    }
}
