use crate::{Error, ErrorKind, Tag, Timestamp, limits};

/// One value in SQL.
///
/// On Workers every number travels as a double. So that the same statement gives the same result on every host,
/// all of them bind integers as `REAL` (rule F1: declare `INTEGER` on integer columns and use
/// `CAST(? AS INTEGER)` in expressions), refuse integers beyond ±(2^53-1) at bind (rule F3), bind `bool` as 0
/// or 1 and NaN as `NULL` (rule F2). On reading, an integral number in that range is [`Value::Integer`],
/// any other number [`Value::Real`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `NULL`.
    Null,
    /// An integral number.
    Integer(i64),
    /// A number that is not integral, or is beyond the exact range of integers.
    Real(f64),
    /// A string.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Value {
    /// For adapters: the number as every host reports it.
    #[doc(hidden)]
    pub fn from_number(number: f64) -> Self {
        #[allow(clippy::cast_precision_loss)] // exact: the limit is 2^53-1
        let exact = number.fract() == 0.0 && number.abs() <= limits::SQL_INTEGER_MAX as f64;
        #[allow(clippy::cast_possible_truncation)] // integral and in range
        if exact { Self::Integer(number as i64) } else { Self::Real(number) }
    }

    /// For adapters: refuses what cannot be bound alike on every host.
    #[doc(hidden)]
    pub fn check_bind(&self) -> Result<(), Error> {
        match self {
            Self::Integer(i) if i.unsigned_abs() > limits::SQL_INTEGER_MAX.unsigned_abs() => Err(Error::new(
                ErrorKind::Invalid,
                format!("the integer {i} is beyond ±(2^53-1), which SQL cannot hold exactly on every host"),
            )),
            _ => Ok(()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Integer(_) => "an integer",
            Self::Real(_) => "a real number",
            Self::Text(_) => "text",
            Self::Blob(_) => "a blob",
        }
    }
}

macro_rules! into_value {
    ($($type:ty => $convert:expr),* $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                let convert: fn($type) -> Value = $convert;
                convert(value)
            }
        })*
    };
}

into_value! {
    i64 => Value::Integer,
    i32 => |v| Value::Integer(v.into()),
    i16 => |v| Value::Integer(v.into()),
    u32 => |v| Value::Integer(v.into()),
    u16 => |v| Value::Integer(v.into()),
    u8 => |v| Value::Integer(v.into()),
    f64 => Value::Real,
    f32 => |v| Value::Real(v.into()),
    bool => |v| Value::Integer(v.into()),
    String => Value::Text,
    &str => |v| Value::Text(v.to_owned()),
    &String => |v| Value::Text(v.clone()),
    std::borrow::Cow<'_, str> => |v| Value::Text(v.into_owned()),
    Vec<u8> => Value::Blob,
    &[u8] => |v| Value::Blob(v.to_owned()),
    bytes::Bytes => |v| Value::Blob(v.into()),
    Timestamp => |v| Value::Integer(v.as_millis()),
    &Tag => |v| Value::Text(v.as_str().to_owned()),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A type that can be read from an SQL value.
pub trait FromValue: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value is of another type or out of range.
    fn from_value(value: Value) -> Result<Self, Error>;
}

fn mismatch<T>(value: &Value, wanted: &str) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Invalid, format!("the column holds {}, not {wanted}", value.kind())))
}

impl FromValue for Value {
    fn from_value(value: Value) -> Result<Self, Error> {
        Ok(value)
    }
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Result<Self, Error> {
        match value {
            Value::Integer(i) => Ok(i),
            other => mismatch(&other, "an integer"),
        }
    }
}

macro_rules! narrow {
    ($($type:ty),*) => {
        $(impl FromValue for $type {
            fn from_value(value: Value) -> Result<Self, Error> {
                let wide = i64::from_value(value)?;
                wide.try_into().map_err(|_| {
                    let message = format!(concat!("the integer {} does not fit ", stringify!($type)), wide);
                    Error::new(ErrorKind::Invalid, message)
                })
            }
        })*
    };
}

narrow!(i32, u64, u32, u16, u8, usize);

impl FromValue for f64 {
    #[allow(clippy::cast_precision_loss)] // an Integer is exact as a double by construction
    fn from_value(value: Value) -> Result<Self, Error> {
        match value {
            Value::Integer(i) => Ok(i as Self),
            Value::Real(r) => Ok(r),
            other => mismatch(&other, "a number"),
        }
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Result<Self, Error> {
        match value {
            Value::Integer(i) => Ok(i != 0),
            other => mismatch(&other, "a boolean"),
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Result<Self, Error> {
        match value {
            Value::Text(text) => Ok(text),
            other => mismatch(&other, "text"),
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value) -> Result<Self, Error> {
        match value {
            Value::Blob(blob) => Ok(blob),
            other => mismatch(&other, "a blob"),
        }
    }
}

impl FromValue for Timestamp {
    fn from_value(value: Value) -> Result<Self, Error> {
        i64::from_value(value).map(Self::from_millis)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, Error> {
        match value {
            Value::Null => Ok(None),
            other => T::from_value(other).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f3_integers_beyond_the_exact_range_are_refused_and_read_as_real() {
        assert!(Value::from(limits::SQL_INTEGER_MAX).check_bind().is_ok());
        assert!(Value::from(-limits::SQL_INTEGER_MAX).check_bind().is_ok());
        for beyond in [limits::SQL_INTEGER_MAX + 1, i64::MAX, i64::MIN] {
            assert_eq!(Value::from(beyond).check_bind().unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(Value::from_number(5.0), Value::Integer(5));
        assert_eq!(Value::from_number(2.5), Value::Real(2.5));
        assert_eq!(Value::from_number(9_007_199_254_740_992.0), Value::Real(9_007_199_254_740_992.0));
    }

    #[test]
    fn reading_names_both_types_when_they_differ() {
        let error = i64::from_value(Value::from("x")).unwrap_err();
        assert_eq!(error.to_string(), "the column holds text, not an integer");
        assert_eq!(
            u8::from_value(Value::Integer(300)).unwrap_err().to_string(),
            "the integer 300 does not fit u8"
        );
        assert_eq!(Option::<i64>::from_value(Value::Null).unwrap(), None);
    }
}
