//! A room and its book-keeper, as an application would write them: storage, sockets, alarms, streams, background work
//! and a call to another object.

use do_core::prelude::*;

#[derive(serde::Deserialize)]
struct Line {
    line: String,
}

/// What was written down.
fn lines(sql: &impl SqlStorage) -> Result<Vec<String>> {
    let lines: Vec<Line> = sql.query("SELECT line FROM log ORDER BY id", ())?;
    Ok(lines.into_iter().map(|line| line.line).collect())
}

pub(crate) struct Room<S: ObjectState>(S);

impl<S: ObjectState> Room<S> {
    fn tell(&self, text: &str) -> Result<()> {
        for socket in self.0.sockets().all() {
            let _ = socket.send(text); // who does not keep up misses it
        }
        Ok(())
    }

    fn note(&self, line: &str) -> Result<()> {
        self.0.sql().exec("INSERT INTO log (line) VALUES (?)", [line])?;
        Ok(())
    }

    fn book(&self) -> Result<StubOf<S>> {
        Ok(self.0.env().namespace("BOOK")?.named("book")?)
    }

    /// Two turns that write, with a call in between.
    async fn add(&self, what: &str) -> Result<Response> {
        self.0.alarms().set(self.0.now() + Duration::from_secs(5)).await?;
        self.note(&format!("begin {what}"))?;
        self.tell(&format!("begin {what}"))?;
        let request = Request::new(format!("begin {what}").into());
        let booked = self.book()?.fetch(request).await?.into_body().text(100).await?;
        self.note(&format!("end {what}"))?;
        self.tell(&format!("end {what}"))?;
        Ok(reply::text(booked))
    }

    /// A chunk each second, each written down first.
    fn stream(&self) -> Response {
        let (sender, body) = Body::channel(1_000);
        let state = self.0.clone();
        self.0.wait_until(async move {
            for n in 0..3 {
                let line = format!("chunk {n}");
                if state.sql().exec("INSERT INTO log (line) VALUES (?)", [line.as_str()]).is_err()
                    || sender.try_send(line).is_err()
                {
                    return;
                }
                state.sleep(Duration::from_secs(1)).await;
            }
        });
        reply::stream(body, "text/plain")
    }
}

impl<S: ObjectState> DurableObject<S> for Room<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(&["CREATE TABLE log (id INTEGER PRIMARY KEY, line TEXT)"])?;
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match request.uri().path() {
            "/join" => Ok(self.0.sockets().accept(&request, Accept::new())?.0),
            "/stream" => Ok(self.stream()),
            "/log" => {
                let lines = lines(self.0.sql())?;
                Ok(reply::text(lines.join("\n")))
            }
            "/panic" => panic!("the room panics"),
            what => self.add(what).await,
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        self.note("alarm")?;
        self.tell("alarm")
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        let Message::Text(text) = &message else { return Ok(()) };
        self.note(&format!("said {}", text.as_str()))?;
        for socket in self.0.sockets().others(&from) {
            socket.send(format!("said {}", text.as_str()))?;
        }
        Ok(())
    }
}

/// Writes down what it is told, and answers with it.
pub(crate) struct Book<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Book<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(&["CREATE TABLE log (id INTEGER PRIMARY KEY, line TEXT)"])?;
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() == "/log" {
            let lines = lines(self.0.sql())?;
            return Ok(reply::text(lines.join("\n")));
        }
        let line = request.into_body().text(100).await?;
        self.0.sql().exec("INSERT INTO log (line) VALUES (?)", [line.as_str()])?;
        Ok(reply::text(line))
    }
}
