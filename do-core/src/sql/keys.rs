//! Which keys of a store to list: a range in the order of their UTF-8 bytes.

use super::Value;

/// Keys of a [`KeyValue`](crate::KeyValue): all that meet every condition set here (rule G3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Keys<'a> {
    prefix: &'a str,
    start: &'a str,
    start_after: Option<&'a str>,
    end: Option<&'a str>,
    reverse: bool,
    limit: Option<u32>,
}

impl<'a> Keys<'a> {
    /// All keys.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those that begin with a text.
    pub fn prefix(prefix: &'a str) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// From this one on, itself included.
    pub fn start(self, start: &'a str) -> Self {
        Self { start, ..self }
    }

    /// Only those behind this one: to go on where the last list ended.
    pub fn start_after(self, start_after: &'a str) -> Self {
        Self { start_after: Some(start_after), ..self }
    }

    /// Up to this one, itself not included.
    pub fn end(self, end: &'a str) -> Self {
        Self { end: Some(end), ..self }
    }

    /// From the last to the first; a limit then counts from the end.
    pub fn reverse(self) -> Self {
        Self { reverse: true, ..self }
    }

    /// At most this many; of 0 there are none.
    pub fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// What comes behind `WHERE`, with its parameters.
    pub(super) fn condition(&self) -> (String, Vec<Value>) {
        let mut condition = "key >= ?".to_owned();
        let mut params = vec![Value::from(self.start.max(self.prefix))];
        if let Some(after) = self.start_after {
            condition.push_str(" AND key > ?");
            params.push(after.into());
        }
        let end = match (self.end.map(str::to_owned), successor(self.prefix)) {
            (Some(before), Some(end)) => Some(before.min(end)),
            (before, end) => before.or(end),
        };
        if let Some(end) = end {
            condition.push_str(" AND key < ?");
            params.push(end.into());
        }
        condition.push_str(if self.reverse { " ORDER BY key DESC" } else { " ORDER BY key" });
        if let Some(limit) = self.limit {
            condition.push_str(" LIMIT ?");
            params.push(limit.into());
        }
        (condition, params)
    }
}

/// The first text behind all that begin with `prefix`; none if there is no such text.
fn successor(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // A range of characters steps over what is none.
        if let Some(next) = (last..=char::MAX).nth(1) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn g3_a_prefix_ends_at_the_next_text_that_has_it_not() {
        for (prefix, end) in [
            ("", None),
            ("a", Some("b")),
            ("a/", Some("a0")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}\u{10ffff}", None),
        ] {
            assert_eq!(successor(prefix).as_deref(), end, "{prefix:?}");
        }
    }

    #[test]
    fn g3_conditions_are_met_together() {
        let keys = Keys::prefix("b").start("a").start_after("bb").end("x").reverse().limit(3);
        let (condition, params) = keys.condition();
        assert_eq!(condition, "key >= ? AND key > ? AND key < ? ORDER BY key DESC LIMIT ?");
        assert_eq!(params, ["b".into(), "bb".into(), "c".into(), Value::Integer(3)]);
        assert_eq!(Keys::all().condition(), ("key >= ? ORDER BY key".to_owned(), vec!["".into()]));
    }

    proptest! {
        #[test]
        fn g3_exactly_the_texts_with_the_prefix_are_between_it_and_its_end(
            prefix in "[a-c\u{d7ff}\u{10ffff}]{0,3}",
            text in "[a-d\u{d7ff}\u{e000}\u{10ffff}]{0,4}",
        ) {
            let before_end = successor(&prefix).is_none_or(|end| text < end);
            prop_assert_eq!(text.starts_with(&prefix), text >= prefix && before_end);
        }
    }
}
