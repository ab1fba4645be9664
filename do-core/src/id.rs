use crate::{Error, ErrorKind, ObjectName};
use std::{
    fmt,
    hash::{Hash, Hasher},
};

/// The identity of one object within its namespace: 32 bytes, written as 64 lower-case hex digits.
///
/// Made by a [`Namespace`](crate::Namespace): from a name, at random, or from its text form. It carries a
/// check value of its namespace, so that an id of another namespace is refused instead of reaching a
/// stranger (rules A1 to A6). Equality is by the 32 bytes alone; the name is not part of it (rule A8).
#[derive(Clone)]
pub struct ObjectId {
    bytes: [u8; 32],
    name: Option<ObjectName>,
}

impl ObjectId {
    /// For adapters: an id whose check value was verified against its namespace.
    #[doc(hidden)]
    pub fn from_parts(bytes: [u8; 32], name: Option<ObjectName>) -> Self {
        Self { bytes, name }
    }

    /// For adapters: reads the 64 hex digits, upper or lower case, without any check of the namespace.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the text is anything else (rule A5).
    #[doc(hidden)]
    pub fn parse_bytes(text: &str) -> Result<[u8; 32], Error> {
        let wrong = || Error::new(ErrorKind::Invalid, "an object id must be 64 hex digits");
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
            *byte = match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(wrong()),
            };
        }
        Ok(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The name it was made from. `None` for ids made at random or read from text (rules A3, A4); inside an
    /// object, the name that the first caller of this instance came by (rule A9).
    pub fn name(&self) -> Option<&ObjectName> {
        self.name.as_ref()
    }
}

/// The 64 hex digits.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self}")?;
        if let Some(name) = &self.name {
            write!(f, ", {:?}", name.as_str())?;
        }
        f.write_str(")")
    }
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for ObjectId {}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a4_text_form_reads_back_in_either_case_and_anything_else_is_refused() {
        let bytes = [0xab; 32];
        let id = ObjectId::from_parts(bytes, None);
        assert_eq!(id.to_string(), "ab".repeat(32));
        assert_eq!(ObjectId::parse_bytes(&"AB".repeat(32)).unwrap(), bytes);
        for wrong in
            ["", "ab", &"ab".repeat(33), &"zz".repeat(32), &"é".repeat(32), &format!("+{}", "a".repeat(63))]
        {
            assert_eq!(ObjectId::parse_bytes(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong:?}");
        }
    }
}
