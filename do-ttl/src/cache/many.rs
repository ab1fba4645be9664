//! The requests for many entries: several keys at once, lists, and what is known of the whole store.

use super::{
    CacheSettings, TtlCache, address,
    frames::{self, AtMost, MANY_BYTES},
    ttl_text,
    wire::{self, Refused},
};
use crate::{Counters, Entry, Page, Put, Stats, Usage, Version};
use bytes::Bytes;
use do_core::{Error, ErrorKind, Keys, ObjectState, Response, Timestamp, reply};
use http::{HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is known of an entry, in the first line of a body.
#[derive(Serialize, Deserialize)]
pub(super) struct Known {
    /// `None` where that is clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// Of its value behind the line; `None` if that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    pub(super) version: Version,
    pub(super) expires: Option<Timestamp>,
}

/// Entries in the order of their keys.
#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) entries: Vec<Known>,
    pub(super) next: Option<String>,
}

/// Entries of keys in the order of the keys. Of fewer than were asked for, if more would be too large.
#[derive(Serialize, Deserialize)]
pub(super) struct Got {
    pub(super) entries: Vec<Option<Known>>,
}

/// An entry to be put.
#[derive(Serialize, Deserialize)]
pub(super) struct Given {
    pub(super) key: String,
    pub(super) bytes: u64,
    /// As the header `ttl`.
    #[serde(default)]
    pub(super) ttl: Option<String>,
}

/// What puts did; `null` for what was over at once.
#[derive(Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) entries: Vec<Option<Known>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Removed {
    pub(super) removed: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) count: u64,
}

/// [`Stats`] with times in milliseconds.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Figures {
    counters: Counters,
    usage: Option<Usage>,
    backlog: u64,
    notices: u64,
    oldest_overdue_ms: Option<u64>,
    alarms_set: u64,
    rows_read: u64,
    rows_written: u64,
    database_size: u64,
}

impl<S: ObjectState, C: CacheSettings> TtlCache<S, C> {
    /// The values of keys, as many of them as go into one answer, but at least one.
    pub(super) fn get_many(&self, body: &[u8]) -> Result<Response, Refused> {
        let (mut entries, mut values, mut bytes) = (Vec::new(), Vec::new(), 0_usize);
        for key in keys(body)? {
            if bytes > MANY_BYTES {
                break;
            }
            let entry = self.store.get_entry(&key)?;
            entries.push(entry.as_ref().map(|entry| Known::of(None, entry)));
            if let Some(entry) = entry {
                bytes = bytes.saturating_add(entry.value.len());
                values.push(entry.value);
            }
        }
        Ok(framed(&Got { entries }, &values)?)
    }

    pub(super) fn put_many(&self, body: Bytes) -> Result<Response, Refused> {
        let (given, mut values): (AtMost<Given>, _) = frames::read(body)?;
        let given = given.items()?;
        let mut items = Vec::with_capacity(given.len());
        for Given { key, bytes, ttl } in given {
            let ttl = ttl.as_deref().map_or_else(|| Ok(C::ttl()), ttl_text::read)?;
            items.push((key, values.take(bytes)?, ttl));
        }
        values.finish()?;
        let puts = self.store.put_many(items)?.into_iter().map(|put| match put {
            Put::Removed => None,
            Put::Stored { version, expires } => Some(Known { key: None, bytes: None, version, expires }),
        });
        Ok(reply::json(&Done { entries: puts.collect() })?)
    }

    pub(super) fn remove_many(&self, body: &[u8]) -> Result<Response, Refused> {
        let removed = self.store.remove_many(keys(body)?)?;
        Ok(reply::json(&Removed { removed })?)
    }

    pub(super) fn list(&self, uri: &Uri) -> Result<Response, Refused> {
        let text = |name| address::parameter(uri, name);
        let (prefix, start, after, end) =
            (text("prefix")?, text("start")?, text("start_after")?, text("end")?);
        let resume = text("resume")?;
        let mut keys = Keys::prefix(prefix.as_deref().unwrap_or_default());
        keys = start.as_deref().map_or(keys, |start| keys.start(start));
        keys = after.as_deref().map_or(keys, |after| keys.start_after(after));
        keys = end.as_deref().map_or(keys, |end| keys.end(end));
        if flag(uri, "reverse")? {
            keys = keys.reverse();
        }
        keys = resume.as_deref().map_or(keys, |resume| keys.resume(resume));
        if let Some(limit) = text("limit")? {
            let limit: u32 = limit.parse().map_err(|_| wrong("limit", "a number"))?;
            keys = keys.limit(limit.min(crate::PAGE_ENTRIES));
        }
        if flag(uri, "values")? {
            let page = self.store.list(keys)?;
            let values: Vec<_> = page.entries.iter().map(|(_, entry)| entry.value.clone()).collect();
            return Ok(framed(&Listed::of(page, Known::of), &values)?);
        }
        let without = |key, entry: &Entry<()>| Known {
            key,
            bytes: None,
            version: entry.version,
            expires: entry.expires,
        };
        Ok(reply::json(&Listed::of(self.store.list_keys(keys)?, without))?)
    }

    pub(super) async fn clear(&self) -> Result<Response, Refused> {
        let removed = self.store.clear().await?;
        Ok(reply::json(&Removed { removed })?)
    }

    pub(super) fn count(&self) -> Result<Response, Refused> {
        let count = self.store.count()?;
        Ok(reply::json(&Count { count })?)
    }

    pub(super) fn stats(&self) -> Result<Response, Refused> {
        Ok(reply::json(&Figures::from(self.store.stats()?))?)
    }
}

fn keys(body: &[u8]) -> Result<Vec<String>, Refused> {
    let keys: AtMost<String> = serde_json::from_slice(body)
        .map_err(|error| frames::no_json("the body is not a JSON array of keys", &error))?;
    Ok(keys.items()?)
}

fn wrong(name: &str, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("`{name}` is not {what}"))
}

/// A parameter that says yes by being there.
fn flag(uri: &Uri, name: &str) -> Result<bool, Error> {
    match address::parameter(uri, name)?.as_deref() {
        None | Some("0" | "false") => Ok(false),
        Some("" | "1" | "true") => Ok(true),
        Some(_) => Err(wrong(name, "1 or 0")),
    }
}

fn framed(head: &impl Serialize, values: &[Bytes]) -> Result<Response, Error> {
    let mut response = reply::stream(frames::write(head, values)?, wire::BYTES);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

impl Known {
    fn of(key: Option<String>, entry: &Entry) -> Self {
        let bytes = Some(entry.value.len() as u64);
        Self { key, bytes, version: entry.version, expires: entry.expires }
    }
}

impl Listed {
    fn of<T>(page: Page<T>, known: impl Fn(Option<String>, &Entry<T>) -> Known) -> Self {
        let entries = page.entries.into_iter().map(|(key, entry)| known(Some(key), &entry)).collect();
        Self { entries, next: page.next }
    }
}

impl From<Stats> for Figures {
    fn from(stats: Stats) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            counters: stats.counters,
            usage: stats.usage,
            backlog: stats.backlog,
            notices: stats.notices,
            oldest_overdue_ms: stats.oldest_overdue.map(ms),
            alarms_set: stats.alarms_set,
            rows_read: stats.rows_read,
            rows_written: stats.rows_written,
            database_size: stats.database_size,
        }
    }
}

impl From<Figures> for Stats {
    fn from(figures: Figures) -> Self {
        Self {
            counters: figures.counters,
            usage: figures.usage,
            backlog: figures.backlog,
            notices: figures.notices,
            oldest_overdue: figures.oldest_overdue_ms.map(Duration::from_millis),
            alarms_set: figures.alarms_set,
            rows_read: figures.rows_read,
            rows_written: figures.rows_written,
            database_size: figures.database_size,
        }
    }
}
