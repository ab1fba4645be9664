//! A row as a type of the application's own, by the names of its columns.

use super::Value;
use serde::{
    de::{
        self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor,
        value::{BytesDeserializer, Error, MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

/// Reads it. Of several columns with one name the last counts (rule F4).
pub(super) fn read<T: DeserializeOwned>(columns: &[String], values: &[Value]) -> Result<T, Error> {
    let fields = columns.iter().zip(values).enumerate();
    let last =
        fields.filter(|(index, (name, _))| !columns.iter().skip(index + 1).any(|later| later == *name));
    let last = last.map(|(_, (name, value))| (name.as_str(), Column(value)));
    T::deserialize(MapDeserializer::new(last))
}

/// One value, as what the field that takes it wants.
#[derive(Clone, Copy)]
struct Column<'a>(&'a Value);

impl IntoDeserializer<'_, Error> for Column<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Column<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Integer(i) => visitor.visit_i64(*i),
            Value::Real(r) => visitor.visit_f64(*r),
            Value::Text(text) => visitor.visit_str(text),
            Value::Blob(blob) => visitor.visit_seq(SeqDeserializer::new(blob.iter().copied())),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Blob(blob) => BytesDeserializer::new(blob).deserialize_any(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A variant without content, by its name.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Text(text) => text.as_str().into_deserializer().deserialize_enum(name, variants, visitor),
            _ => Err(de::Error::custom(format_args!("the enum {name} is read from text"))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).to_vec()
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Created,
        Removed,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    struct Id(u32);

    #[derive(Deserialize, PartialEq, Debug)]
    struct Line {
        id: Id,
        kind: Kind,
        text: Option<String>,
        score: f64,
        bytes: Vec<u8>,
    }

    #[test]
    fn fields_are_read_by_name_and_others_are_left() {
        let names = columns(["kind", "unknown", "bytes", "id", "text", "score"]);
        let values = [
            Value::from("removed"),
            Value::Null,
            Value::Blob(vec![1, 2]),
            Value::Integer(7),
            Value::Null,
            Value::Integer(2),
        ];
        let line: Line = read(&names, &values).unwrap();
        let expected = Line { id: Id(7), kind: Kind::Removed, text: None, score: 2.0, bytes: vec![1, 2] };
        assert_eq!(line, expected);
    }

    #[test]
    fn f4_of_a_duplicate_name_the_last_counts() {
        let names = columns(["n", "m", "n"]);
        let values = [Value::from("one"), Value::from("m"), Value::from("two")];
        let read: BTreeMap<String, String> = read(&names, &values).unwrap();
        assert_eq!(read, [("m", "m"), ("n", "two")].map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let said = |names: &[String], values: &[Value]| read::<Line>(names, values).unwrap_err().to_string();
        assert_eq!(said(&columns(["id"]), &[Value::from("x")]), "invalid type: string \"x\", expected u32");
        assert_eq!(
            said(&columns(["id"]), &[Value::Integer(-1)]),
            "invalid value: integer `-1`, expected u32"
        );
        assert_eq!(said(&columns(["kind"]), &[Value::Integer(1)]), "the enum Kind is read from text");
        assert_eq!(
            said(&columns(["kind"]), &[Value::from("gone")]),
            "unknown variant `gone`, expected `created` or `removed`"
        );
        assert_eq!(said(&columns(["kind"]), &[Value::from("created")]), "missing field `id`");
    }

    #[test]
    fn a_row_can_be_read_as_anything_with_names() {
        let names = columns(["a", "b"]);
        let json: serde_json::Value = read(&names, &[Value::Real(0.5), Value::Blob(vec![9])]).unwrap();
        assert_eq!(json, serde_json::json!({"a": 0.5, "b": [9]}));
    }
}
