//! axum's `Sse` with a tokio broadcast channel, as its documentation and examples do it.

use super::order::Order;
use crate::fanout::{
    Outcome,
    server::{Drops, RING},
};
use ::axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
    routing::{get, post},
    serve::ListenerExt as _,
};
use futures::{Stream, StreamExt as _};
use std::{convert::Infallible, future::ready, sync::Arc};
use tokio::{net::TcpListener, sync::broadcast, time::sleep};
use tokio_stream::wrappers::{BroadcastStream, errors::BroadcastStreamRecvError::Lagged};

#[derive(Clone)]
struct Shared {
    events: broadcast::Sender<Arc<str>>,
    drops: Drops,
}

/// Serves on a listener.
///
/// # Errors
/// When the server ends.
pub async fn serve(listener: TcpListener, drops: Drops) -> Outcome<()> {
    let shared = Shared { events: broadcast::channel(RING).0, drops };
    let app = Router::new().route("/publish", post(publish)).fallback(get(subscribe)).with_state(shared);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(::axum::serve(listener, app).await?)
}

async fn publish(State(shared): State<Shared>, text: String) -> Result<(), StatusCode> {
    let order = Order::parse(&text).map_err(|_| StatusCode::BAD_REQUEST)?;
    let publish = |text: String| drop(shared.events.send(text.into())); // fails when nobody listens
    order.run(sleep, publish).await;
    Ok(())
}

async fn subscribe(State(shared): State<Shared>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = BroadcastStream::new(shared.events.subscribe()).filter_map(move |event| {
        ready(match event {
            Ok(text) => Some(Ok(Event::default().data(text))),
            Err(Lagged(missed)) => {
                shared.drops.add(missed);
                None
            }
        })
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
