//! What concerns listing.

use crate::{TtlProbe, given::told_entry};
use do_core::{Failure, Keys, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What can be told about listing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListCommand {
    /// `{entries: [[key, {value, expires, version}]], next}`.
    Entries(Listed),
    /// `{keys, next}`.
    Keys(Listed),
    /// How many entries each page has, from the first to the last.
    Pages(Listed),
}

/// Which keys: as [`Keys`] has them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listed {
    /// What they begin with.
    pub prefix: String,
    /// From this one on.
    pub start: String,
    /// Only behind this one.
    pub start_after: Option<String>,
    /// Before this one.
    pub end: Option<String>,
    /// From the last to the first.
    pub reverse: bool,
    /// At most so many.
    pub limit: Option<u32>,
    /// The `next` of a page.
    pub resume: Option<String>,
}

impl Listed {
    fn made(&self) -> Keys<'_> {
        let mut keys = Keys::prefix(&self.prefix).start(&self.start);
        keys = if self.reverse { keys.reverse() } else { keys };
        keys = self.start_after.as_deref().map_or(keys, |after| keys.start_after(after));
        keys = self.end.as_deref().map_or(keys, |end| keys.end(end));
        keys = self.limit.map_or(keys, |limit| keys.limit(limit));
        self.resume.as_deref().map_or(keys, |last| keys.resume(last))
    }
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn list_command(&self, store: &str, command: ListCommand) -> Result<Value, Failure> {
        let store = self.store(store)?;
        Ok(match command {
            ListCommand::Entries(listed) => {
                let page = store.list(listed.made())?;
                let told = |(key, entry): &(String, _)| json!([key, told_entry(Some(entry))]);
                json!({"entries": page.entries.iter().map(told).collect::<Value>(), "next": page.next})
            }
            ListCommand::Keys(listed) => {
                let page = store.list_keys(listed.made())?;
                json!({"keys": page.keys().collect::<Vec<_>>(), "next": page.next})
            }
            ListCommand::Pages(mut listed) => {
                let mut sizes = Vec::new();
                loop {
                    let page = store.list(listed.made())?;
                    sizes.push(page.entries.len());
                    if page.next.is_none() {
                        return Ok(json!(sizes));
                    }
                    listed.resume = page.next;
                }
            }
        })
    }
}
