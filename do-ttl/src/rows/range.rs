use super::{row::value, table::Rows};
use crate::{Entry, Version};
use bytes::Bytes;
use do_core::{Error, Keys, Row, SqlStorage, Timestamp, Value, tables};
use std::ops::ControlFlow;

/// A row of a range of keys.
#[derive(Debug)]
pub(crate) struct Ranged {
    pub(crate) key: String,
    /// None if it is expired.
    pub(crate) entry: Option<Entry>,
}

impl Ranged {
    fn read(row: &Row<'_>, now: Timestamp) -> Result<Self, Error> {
        let expires: Option<Timestamp> = row.at(1)?;
        let is_live = expires.is_none_or(|expires| expires > now);
        let value: Option<Vec<u8>> = row.at(3)?;
        let entry = Entry {
            value: value.map_or_else(Bytes::new, Bytes::from),
            expires,
            version: Version(row.at(2)?),
        };
        Ok(Self { key: row.at(0)?, entry: is_live.then_some(entry) })
    }
}

/// The statements on a range: eight texts, whatever the range. Without an end it ends before a blob, behind all texts.
macro_rules! select {
    ($value:expr, $lower:literal, $order:literal) => {
        concat!(
            "SELECT key, expires, version, ",
            $value,
            " FROM _ttl WHERE store = ? AND key ",
            $lower,
            " ? AND key < ? ORDER BY key",
            $order
        )
    };
}

/// With the value, unless it is expired: it is not read then.
macro_rules! valued {
    ($lower:literal, $order:literal) => {
        select!(concat!("CASE WHEN expires IS NULL OR expires > ? THEN ", value!(), " END"), $lower, $order)
    };
}

/// The statement with values or without, that has the first key in it or not, and begins at the last one or not.
fn text(values: bool, is_included: bool, is_reverse: bool) -> &'static str {
    match (values, is_included, is_reverse) {
        (true, true, false) => valued!(">=", ""),
        (true, true, true) => valued!(">=", " DESC"),
        (true, false, false) => valued!(">", ""),
        (true, false, true) => valued!(">", " DESC"),
        (false, true, false) => select!("NULL", ">=", ""),
        (false, true, true) => select!("NULL", ">=", " DESC"),
        (false, false, false) => select!("NULL", ">", ""),
        (false, false, true) => select!("NULL", ">", " DESC"),
    }
}

impl<Q: SqlStorage> Rows<Q> {
    /// Gives the rows of a range in their order, expired or not, as far as `each` wants them, with their values or without.
    /// 1 read for each, and for the one behind them. [`Keys::most`] is the caller's.
    pub(crate) fn range(
        &self,
        store: &str,
        keys: &Keys<'_>,
        values: bool,
        now: Timestamp,
        mut each: impl FnMut(Ranged) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let (from, is_included) = keys.lower();
        let before = keys.upper().map_or_else(|| Value::Blob(vec![0]), Value::Text);
        let mut params = vec![store.into(), from.into(), before];
        if values {
            params.insert(0, now.into());
        }
        match self.sql.for_each(text(values, is_included, keys.is_reverse()), params, |row| {
            Ok(each(Ranged::read(&row, now)?))
        }) {
            Err(error) if tables::is_missing(&error, super::table::PREFIX) => Ok(()),
            result => result,
        }
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::{Ttl, inside::inside};
    use do_core::ObjectState;

    #[test]
    fn every_range_is_found_without_a_search_and_in_its_order() {
        inside(0, |object| async move {
            let _ = object.store("s").put("a", "v", Ttl::NEVER)?;
            for which in 0..8 {
                let values = which & 1 != 0;
                let text = text(values, which & 2 != 0, which & 4 != 0);
                let mut params = vec!["s".into(), "a".into(), Value::Blob(vec![0])];
                if values {
                    params.insert(0, Value::Integer(0));
                }
                let rows = object.state.sql().exec(&format!("EXPLAIN QUERY PLAN {text}"), params)?;
                let plan: Vec<String> = rows.iter().map(|row| row.at(3)).collect::<Result<_, _>>()?;
                assert_eq!(plan[0], "SEARCH _ttl USING PRIMARY KEY (store=? AND key>? AND key<?)", "{text}");
                assert!(!plan.iter().any(|step| step.contains("SCAN ") || step.contains("TEMP")), "{plan:?}");
            }
            Ok(())
        });
    }
}
