//! Several values in one body: a line of JSON that says what they are and how long each is, and behind it their bytes.

use bytes::Bytes;
use do_core::{Error, ErrorKind};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Most bytes of a body with several values, and of the values in an answer, beside one that is larger alone.
pub(super) const MANY_BYTES: usize = 8 << 20;
/// Most keys of a request.
pub(super) const MANY_KEYS: usize = 1_000;

/// # Errors
/// [`ErrorKind::Invalid`] for what cannot be JSON.
pub(super) fn write<'a>(
    head: &impl Serialize,
    values: impl IntoIterator<Item = &'a Bytes>,
) -> Result<Bytes, Error> {
    let mut body =
        serde_json::to_vec(head).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    body.push(b'\n'); // JSON has none within
    values.into_iter().for_each(|value| body.extend_from_slice(value));
    Ok(body.into())
}

/// What the line says, and the values behind it.
///
/// # Errors
/// [`ErrorKind::Invalid`] for a line that is not of that shape.
pub(super) fn read<T: DeserializeOwned>(mut body: Bytes) -> Result<(T, Values), Error> {
    let end = body.iter().position(|byte| *byte == b'\n').unwrap_or(body.len());
    let head = body.split_to(end);
    let head =
        serde_json::from_slice(&head).map_err(|error| no_json("the first line of the body", &error))?;
    Ok((head, Values(body.slice(usize::from(!body.is_empty())..))))
}

/// That something is not the JSON that it is to be. Without all of what it is, which may be as large as the body.
pub(super) fn no_json(what: &str, error: &serde_json::Error) -> Error {
    const MOST: usize = 200;
    let (why, line, column) = (error.to_string(), error.line(), error.column());
    let message = if why.len() <= MOST {
        format!("{what}: {why}")
    } else {
        let start: String = why.chars().take(MOST).collect();
        format!("{what}: {start}.. at line {line} column {column}")
    };
    Error::new(ErrorKind::Invalid, message)
}

/// A list, of which no more is kept than one item too many: so that one that is refused takes no memory.
#[derive(Debug)]
pub(super) struct AtMost<T> {
    items: Vec<T>,
    /// How many there are.
    count: usize,
}

impl<T> AtMost<T> {
    /// # Errors
    /// [`ErrorKind::Limit`] for more than [`MANY_KEYS`].
    pub(super) fn items(self) -> Result<Vec<T>, Error> {
        if self.count > MANY_KEYS {
            let message = format!("there are {} keys, the limit is {MANY_KEYS}", self.count);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(self.items)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AtMost<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
            type Value = AtMost<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while items.len() <= MANY_KEYS {
                    let Some(item) = from.next_element()? else {
                        return Ok(AtMost { count: items.len(), items });
                    };
                    items.push(item);
                }
                let mut count = items.len();
                while from.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(AtMost { items, count })
            }
        }

        from.deserialize_seq(Items(PhantomData))
    }
}

/// The values that were not taken yet.
#[derive(Debug)]
pub(super) struct Values(Bytes);

impl Values {
    /// The next one, of so many bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there are not so many.
    pub(super) fn take(&mut self, bytes: u64) -> Result<Bytes, Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes > self.0.len() {
            return Err(Error::new(ErrorKind::Invalid, "the body ends before its values do"));
        }
        Ok(self.0.split_to(bytes))
    }

    /// # Errors
    /// [`ErrorKind::Invalid`] when there are bytes that belong to no value.
    pub(super) fn finish(self) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Invalid, format!("the body has {} bytes too many", self.0.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let values = [Bytes::from("a\nb"), Bytes::new(), Bytes::from("\0\u{e9}")];
        let body = write(&[("x\ny", 3), ("", 0), ("z", 3)], &values).unwrap();
        let (head, mut rest): (Vec<(String, u64)>, _) = read(body).unwrap();
        assert_eq!(head[0].0, "x\ny");
        for ((_, bytes), value) in head.iter().zip(&values) {
            assert_eq!(rest.take(*bytes).unwrap(), value);
        }
        rest.finish().unwrap();
        let (head, rest): (u8, _) = read(Bytes::from("7")).unwrap();
        assert_eq!(head, 7);
        rest.finish().unwrap();
    }

    #[test]
    fn bodies_that_are_too_short_or_too_long_are_refused() {
        let body = || write(&1, &[Bytes::from("abc")]).unwrap();
        let (_, mut rest) = read::<u8>(body()).unwrap();
        assert_eq!(rest.take(4).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(rest.take(u64::MAX).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(rest.take(2).unwrap(), "ab");
        assert_eq!(rest.finish().unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(read::<u8>(Bytes::from("x\n1")).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(read::<u8>(Bytes::new()).unwrap_err().kind(), ErrorKind::Invalid);
    }
}
