//! The two validated strings of the platform: object names and socket tags.

use crate::{Error, ErrorKind, limits};
use std::{borrow::Cow, fmt};

macro_rules! validated_string {
    ($(#[$doc:meta])* $name:ident, $max:expr, $what:literal, $macro:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Cow<'static, str>);

        impl $name {
            /// Checks the length and takes the string as it is: nothing is trimmed or folded.
            ///
            /// # Errors
            /// [`ErrorKind::Limit`] when it is too long.
            pub fn new(text: impl Into<String>) -> Result<Self, Error> {
                let text = text.into();
                if text.len() > $max {
                    let message = format!(concat!($what, " is {} bytes long, the limit is {}"), text.len(), $max);
                    return Err(Error::new(ErrorKind::Limit, message).of_request());
                }
                Ok(Self(Cow::Owned(text)))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            #[doc(hidden)]
            pub const fn __checked(text: &'static str) -> Self {
                assert!(text.len() <= $max, concat!($what, " is too long"));
                Self(Cow::Borrowed(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl TryFrom<&str> for $name {
            type Error = Error;

            fn try_from(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(other: &$name) -> Self {
                other.clone()
            }
        }
    };
}

validated_string! {
    /// The name of an object: any string of at most [`limits::OBJECT_NAME_BYTES`] UTF-8 bytes, the empty one
    /// included. The same name is always the same object of its namespace (rule A1): it is compared byte for
    /// byte, so case, blanks and Unicode form matter.
    ///
    /// [`object_name!`](crate::object_name) checks a literal at compile time.
    ///
    /// ```
    /// use do_core::{ObjectName, object_name};
    ///
    /// assert_eq!(ObjectName::new("room-1")?, object_name!("room-1"));
    /// assert!(ObjectName::new("x".repeat(1_025)).is_err());
    /// # Ok::<(), do_core::Error>(())
    /// ```
    ObjectName, limits::OBJECT_NAME_BYTES, "object name", "object_name"
}

validated_string! {
    /// A label on a socket, by which it is found again after hibernation: at most [`limits::TAG_BYTES`] UTF-8
    /// bytes (rule D1). The empty string is a legal tag.
    ///
    /// [`tag!`](crate::tag) checks a literal at compile time.
    ///
    /// ```
    /// use do_core::{Tag, tag};
    ///
    /// assert_eq!(Tag::new("editors")?, tag!("editors"));
    /// assert!(Tag::new("é".repeat(129)).is_err()); // 258 bytes
    /// # Ok::<(), do_core::Error>(())
    /// ```
    Tag, limits::TAG_BYTES, "tag", "tag"
}

/// A [`Tag`] from a literal, checked at compile time.
///
/// ```
/// use do_core::tag;
/// assert_eq!(tag!("editors").as_str(), "editors");
/// ```
///
/// ```compile_fail
/// # use do_core::tag;
/// let long = tag!("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890");
/// ```
#[macro_export]
macro_rules! tag {
    ($text:literal) => {
        const { $crate::Tag::__checked($text) }
    };
}

/// An [`ObjectName`] from a literal, checked at compile time.
#[macro_export]
macro_rules! object_name {
    ($text:literal) => {
        const { $crate::ObjectName::__checked($text) }
    };
}
