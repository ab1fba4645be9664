//! Which keys of a store to list: a range in the order of their UTF-8 bytes.

use super::Value;

/// Keys of a store: all that meet every condition set here (rule G3).
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

    /// To go on where the last list ended, at `last`: behind it, in reverse before it. Set [`reverse`](Self::reverse) first.
    pub fn resume(self, last: &'a str) -> Self {
        if self.reverse { self.end(last) } else { self.start_after(last) }
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

    /// For patterns: where the range begins, and whether that text itself is in it.
    ///
    /// One bound, because SQLite begins at the first one of several and reads all up to the other.
    #[doc(hidden)]
    pub fn lower(&self) -> (&'a str, bool) {
        let start = self.start.max(self.prefix);
        self.start_after.filter(|after| *after >= start).map_or((start, true), |after| (after, false))
    }

    /// For patterns: the text before which the range ends.
    #[doc(hidden)]
    pub fn upper(&self) -> Option<String> {
        match (self.end.map(str::to_owned), successor(self.prefix)) {
            (Some(before), Some(end)) => Some(before.min(end)),
            (before, end) => before.or(end),
        }
    }

    /// For patterns: whether it is from the last to the first.
    #[doc(hidden)]
    pub fn is_reverse(&self) -> bool {
        self.reverse
    }

    /// For patterns: how many at most.
    #[doc(hidden)]
    pub fn most(&self) -> Option<u32> {
        self.limit
    }

    /// What comes behind `WHERE`, with its parameters.
    pub(super) fn condition(&self) -> (String, Vec<Value>) {
        let (from, is_included) = self.lower();
        let mut condition = if is_included { "key >= ?" } else { "key > ?" }.to_owned();
        let mut params = vec![Value::from(from)];
        if let Some(end) = self.upper() {
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
        assert_eq!(condition, "key > ? AND key < ? ORDER BY key DESC LIMIT ?");
        assert_eq!(params, ["bb".into(), "c".into(), Value::Integer(3)]);
        assert_eq!(Keys::all().condition(), ("key >= ? ORDER BY key".to_owned(), vec!["".into()]));
    }

    #[test]
    fn g3_there_is_one_lower_bound_which_is_the_higher_one() {
        assert_eq!(Keys::all().start("b").start_after("a").lower(), ("b", true));
        assert_eq!(Keys::all().start("b").start_after("b").lower(), ("b", false));
        assert_eq!(Keys::prefix("b").start_after("c").lower(), ("c", false));
    }

    #[test]
    fn a_list_goes_on_in_its_direction() {
        assert_eq!(Keys::prefix("b").resume("bx"), Keys::prefix("b").start_after("bx"));
        assert_eq!(Keys::prefix("b").reverse().resume("bx"), Keys::prefix("b").reverse().end("bx"));
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
