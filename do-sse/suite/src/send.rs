//! Events on their way.

use crate::FeedProbe;
use do_core::{BroadcastReport, Error, Failure, ObjectState};
use do_sse::{Event, Published};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a feed can be told to send.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendCommand {
    /// Gives the report.
    Broadcast(Send),
    /// Gives the position and the report.
    Publish(Send),
    /// To those with this id. Gives the report.
    To(String, Outgoing),
    /// Broadcasts the numbers from one to before another, each filled with spaces up to a length; the keys are the numbers
    /// modulo the last, where that is not 0. All of one turn, which leave together. The reports.
    Flood(u32, u32, usize, u32),
    /// Publishes them. The reports.
    Publications(u32, u32, usize),
    /// Publishes this many events of this length that are named by their numbers from here on. The last position.
    Many(u32, u32, usize),
}

/// An event.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outgoing {
    /// Its name.
    pub event: Option<String>,
    /// Its data.
    pub data: Option<String>,
    /// Its id.
    pub id: Option<String>,
    /// So many more bytes of data.
    pub filled: usize,
}

impl Outgoing {
    fn made(self) -> Result<Event, Error> {
        let mut event = Event::new();
        if let Some(name) = self.event {
            event = event.event(name)?;
        }
        if let Some(id) = self.id {
            event = event.id(id)?;
        }
        Ok(match self.data {
            Some(data) => event.data(data + &".".repeat(self.filled)),
            None => event,
        })
    }
}

/// An event and whom it is for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Send {
    /// The event.
    #[serde(flatten)]
    pub event: Outgoing,
    /// Only to those who listen to any of the topics.
    pub to: Vec<String>,
    /// Not to these ids.
    pub except: Vec<String>,
    /// Only to ids that begin so.
    pub begins: Option<String>,
    /// Of what has the same key only the latest waits.
    pub key: Option<String>,
}

impl<S: ObjectState> FeedProbe<S> {
    pub(crate) fn send_command(&self, command: SendCommand) -> Result<Value, Failure> {
        let feed = self.feed();
        Ok(match command {
            SendCommand::Broadcast(send) => json!(checked(self.broadcast(send)?)?),
            SendCommand::Publish(send) => {
                let mut publication = feed.publishing(send.event.made()?);
                for topic in send.to {
                    publication = publication.to(topic);
                }
                let Published { position, report, .. } = publication.send()?;
                json!([position, checked(report)?])
            }
            SendCommand::To(id, event) => json!(checked(feed.send_to(&id, event.made()?))?),
            SendCommand::Flood(from, to, length, keys) => {
                self.write()?;
                let mut reports = Vec::new();
                for number in from..to {
                    let mut broadcast = feed.broadcast(filled(number, length));
                    if let Some(key) = number.checked_rem(keys) {
                        broadcast = broadcast.key(key.to_string());
                    }
                    reports.push(checked(broadcast.send())?);
                }
                json!(reports)
            }
            SendCommand::Publications(from, to, length) => {
                self.write()?;
                let mut reports = Vec::new();
                for number in from..to {
                    reports.push(checked(feed.publish(filled(number, length))?.report)?);
                }
                json!(reports)
            }
            SendCommand::Many(from, count, length) => {
                let mut last = None;
                for number in (from..).take(count as usize) {
                    let event = Event::named(number.to_string())?.data(".".repeat(length));
                    last = Some(feed.publish(event)?.position);
                }
                json!(last)
            }
        })
    }

    fn broadcast(&self, send: Send) -> Result<BroadcastReport, Failure> {
        let feed = self.feed();
        let mut broadcast = feed.broadcast(send.event.made()?);
        for topic in send.to {
            broadcast = broadcast.to(topic);
        }
        for id in &send.except {
            broadcast = broadcast.except(id);
        }
        if let Some(begins) = &send.begins {
            broadcast = broadcast.filter(move |info| info.id.starts_with(begins.as_str()));
        }
        if let Some(key) = send.key {
            broadcast = broadcast.key(key);
        }
        Ok(broadcast.send())
    }
}

/// With spaces up to a length.
fn filled(number: u32, length: usize) -> String {
    let mut text = number.to_string();
    text.extend(std::iter::repeat_n(' ', length.saturating_sub(text.len())));
    text
}

/// Matched, queued, dropped, coalesced, disconnected, of which the first is the sum of the others.
fn checked(report: BroadcastReport) -> Result<[usize; 5], Failure> {
    let BroadcastReport { matched, queued, dropped, coalesced, disconnected, .. } = report;
    if matched != queued + dropped + coalesced + disconnected {
        return Err(Failure::msg(format!("{report:?} does not add up")));
    }
    Ok([matched, queued, dropped, coalesced, disconnected])
}
