//! A client that comes back where it was.

use crate::object::World;
use do_core::{Body, Error, Stub};
use do_sse::Decoder;
use futures::FutureExt;
use http_body_util::BodyExt;

/// What it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// A stream began: the id, if it has one.
    Ready(Option<String>),
    /// Something is missing: the position now, and the data.
    Reset(String, String),
    /// An event: its position and its data.
    Event(String, String),
    Ended,
}

/// One client, and everything that it was told.
#[derive(Debug)]
pub(crate) struct Reader {
    path: String,
    pub(crate) id: String,
    body: Option<Body>,
    decoder: Decoder,
    pub(crate) told: Vec<Told>,
}

impl Reader {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.into(), id: String::new(), body: None, decoder: Decoder::new(), told: Vec::new() }
    }

    /// One that is there.
    pub(crate) async fn at(world: &World, path: &str) -> Self {
        let mut reader = Self::new(path);
        reader.connect(world).await.unwrap();
        reader.drain();
        reader
    }

    /// One that had everything up to here, and is away.
    pub(crate) fn behind(path: &str, id: &str) -> Self {
        Self { id: id.into(), ..Self::new(path) }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.body.is_some()
    }

    pub(crate) async fn connect(&mut self, world: &World) -> Result<(), Error> {
        let mut request = http::Request::get(&self.path);
        if !self.id.is_empty() {
            request = request.header("last-event-id", &self.id);
        }
        let response = world.log.fetch(request.body(Body::empty()).unwrap()).await?;
        assert_eq!(response.status(), 200);
        self.decoder = Decoder::new().with_last_event_id(&self.id);
        self.body = Some(response.into_body());
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.body = None;
    }

    /// Takes what is there now.
    pub(crate) fn drain(&mut self) {
        while let Some(body) = &mut self.body {
            let Some(frame) = body.frame().now_or_never() else { return };
            let Some(Ok(frame)) = frame else {
                self.body = None;
                self.told.push(Told::Ended);
                return;
            };
            self.decoder.push(frame.data_ref().unwrap()).unwrap();
            while let Some(event) = self.decoder.next_event().unwrap() {
                self.told.push(match event.event.as_str() {
                    "ready" => Told::Ready(Some(event.id.clone()).filter(|id| *id != self.id)),
                    "reset" => Told::Reset(event.id.clone(), event.data),
                    "message" => Told::Event(event.id.clone(), event.data),
                    other => panic!("an event {other:?}"),
                });
                self.id = event.id;
            }
        }
    }

    /// Is there, and has everything; comes back as often as it takes.
    pub(crate) async fn catch_up(&mut self, world: &World) {
        for _ in 0..50 {
            world.kit.settle().await;
            self.drain();
            if self.is_there() {
                return;
            }
            let _ = self.connect(world).await;
        }
        panic!("it never gets there: {:?}", self.told);
    }

    /// What it was told since the last time.
    pub(crate) fn news(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// The data of the events since the last time.
    pub(crate) fn texts(&mut self) -> Vec<String> {
        let told = self.news().into_iter();
        told.filter_map(|told| if let Told::Event(_, text) = told { Some(text) } else { None }).collect()
    }
}
