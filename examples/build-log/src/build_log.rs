use do_core::prelude::*;
use do_sse::{Event, Feed, History, Settings};

/// The log of one build: everyone is shown what there is of it, then each line as it comes, and in the end the result.
#[derive(Debug)]
pub struct BuildLog<S: ObjectState> {
    state: S,
    feed: Feed<S>,
}

impl<S: ObjectState> DurableObject<S> for BuildLog<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(&["CREATE TABLE result (text TEXT NOT NULL)"])?;
        let history = History::new().max_events(10_000).max_bytes(4 << 20).replay(10_000);
        // Room for whole reports: a reader that is further behind has to come back for the rest.
        let settings = Settings::new().max_events(10_000).max_bytes(1 << 20).history(history);
        Ok(Self { feed: Feed::stored(&state, settings, Alarm::raw(&state)), state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let is_end = match (request.method().as_str(), request.uri().path().splitn(4, '/').nth(3)) {
            ("GET" | "HEAD", Some("log")) => return Ok(self.feed.open(&request).start().await?),
            ("POST", Some("lines")) => false,
            ("POST", Some("end")) => true,
            _ => return Ok(reply::status(StatusCode::NOT_FOUND)),
        };
        let body = request.into_body().bytes(64 << 10).await?;
        let text = String::from_utf8_lossy(&body); // programs write what they like
        // From here on it is one turn: one commit, and before it nobody is answered or sent anything.
        if self.state.sql().scalar::<i64>("SELECT 1 FROM result", ())?.is_some() {
            return Ok(reply::status(StatusCode::CONFLICT));
        }
        if is_end {
            self.state.sql().exec("INSERT INTO result VALUES (?)", (text.trim(),))?;
            self.feed.publish(Event::named("end")?.data(text.trim()))?;
        }
        for line in text.lines().filter(|_| !is_end) {
            self.feed.publish(Event::named("line")?.data(line))?;
        }
        Ok(reply::status(StatusCode::NO_CONTENT))
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.feed.on_alarm().await?)
    }
}

#[cfg(test)]
mod tests;
