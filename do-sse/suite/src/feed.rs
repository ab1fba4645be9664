//! The feed, and who is connected to it.

use crate::{FeedProbe, Settings};
use do_core::{Failure, Gap, ObjectState, Request, Response, testing::Query};
use do_sse::{Backlog, Event, Stats};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a feed can be told that sends nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedCommand {
    /// How many there are.
    Count,
    /// The id and the topics of each.
    Infos,
    /// All of the statistics.
    Stats,
    /// Where the sequence is.
    Position,
    /// Ends the connections with this id. How many.
    Close(String),
    /// Ends all. How many.
    CloseAll,
    /// What the alarm does.
    Beat,
}

impl<S: ObjectState> FeedProbe<S> {
    pub(crate) async fn feed_command(&self, command: FeedCommand) -> Result<Value, Failure> {
        let feed = self.feed();
        Ok(match command {
            FeedCommand::Count => json!(feed.count()),
            FeedCommand::Infos => {
                let infos = feed.infos();
                let told = infos.iter().map(|info| {
                    let topics: Vec<&str> = info.topics.iter().map(|topic| &**topic).collect();
                    json!([*info.id, topics])
                });
                Value::Array(told.collect())
            }
            FeedCommand::Stats => told(feed.stats()),
            FeedCommand::Position => json!(feed.position()?),
            FeedCommand::Close(id) => json!(feed.close(&id)),
            FeedCommand::CloseAll => json!(feed.close_all()),
            FeedCommand::Beat => {
                feed.on_alarm().await?;
                Value::Null
            }
        })
    }

    /// Begins the stream that a request asks for.
    pub(crate) async fn open(&self, request: &Request) -> Result<Response, Failure> {
        let (feed, settings) = (self.feed(), self.settings());
        let query = Query::of(request.uri())?;
        let mut opening = feed.open(request);
        if let Some(id) = query.first("id") {
            opening = opening.id(id);
        }
        for topic in query.all("topic") {
            opening = opening.topic(topic);
        }
        if let Some(snapshot) = &settings.snapshot {
            opening = opening.snapshot(move || Ok(snapshot.clone()));
        }
        if let Some(newest) = settings.backlog {
            opening = opening.backlog(move |after| {
                self.log.note(json!({"event": "backlog", "after": after}))?;
                shown(after, newest)
            });
        }
        Ok(opening.start().await?)
    }
}

/// The application's own history, as [`Settings::backlog`] has it.
fn shown(after: Option<&str>, newest: u64) -> Result<Backlog, do_core::Error> {
    const OLDEST: u64 = 10;
    let number = after.and_then(|after| after.strip_prefix('n')?.parse::<u64>().ok());
    let from = number.filter(|number| *number <= newest).unwrap_or(newest).max(OLDEST);
    let mut backlog = Backlog::default();
    backlog.gap = match (after, number) {
        (None, _) => None,
        (Some(_), Some(number)) if number < OLDEST => Some(Gap { lost: Some(OLDEST - number) }),
        (Some(_), Some(number)) if number <= newest => None,
        (Some(_), _) => Some(Gap { lost: None }),
    };
    backlog.from = Some(format!("n{from}"));
    for number in from + 1..=newest {
        backlog.events.push(Event::new().data(number.to_string()).id(format!("n{number}"))?);
    }
    Ok(backlog)
}

/// The statistics as JSON. A field that is new there is to be shown here too, or its cases say nothing.
fn told(stats: Stats) -> Value {
    json!({
        "connections": stats.connections, "waiting_bytes": stats.waiting_bytes, "opened": stats.opened,
        "gone": stats.gone, "full": stats.full, "stalled": stats.stalled, "aged": stats.aged,
        "replaced": stats.replaced, "closed": stats.closed, "sent_away": stats.sent_away,
        "encoded": stats.encoded, "delivered": stats.delivered, "dropped": stats.dropped,
        "coalesced": stats.coalesced, "beats": stats.beats, "resumed": stats.resumed, "gaps": stats.gaps,
        "replayed": stats.replayed,
    })
}

impl Settings {
    /// The slot's name.
    pub(crate) const SLOT: &'static str = "feed";
}
