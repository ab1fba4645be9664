//! The floor: hyper and, for each connection, a bounded queue of bytes that the publisher encoded once.

use super::order::Order;
use crate::fanout::{
    Outcome,
    server::{Drops, PUBLISH, QUEUE},
};
use ::axum::{Router, serve::ListenerExt as _};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, error::TrySendError},
    time::sleep,
};

type Members = Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>;

/// What a connection's queue holds, or nothing.
struct Events(Option<mpsc::Receiver<Bytes>>);

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.as_mut() {
            Some(events) => events.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event)))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}

/// Serves on a listener.
///
/// # Errors
/// When it cannot accept.
pub async fn serve(listener: TcpListener, drops: Drops) -> Outcome<()> {
    let members = Members::default();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (members, drops) = (Arc::clone(&members), drops.clone());
        tokio::spawn(async move {
            let service = service_fn(async |request: Request<Incoming>| {
                Ok::<_, Infallible>(answer(request, &members, &drops).await)
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Serves on a listener as a handler of axum: what axum itself costs.
///
/// # Errors
/// When the server ends.
pub async fn serve_in_axum(listener: TcpListener, drops: Drops) -> Outcome<()> {
    let members = Members::default();
    let app = Router::new().fallback(async move |request: Request<::axum::body::Body>| {
        answer(request, &members, &drops).await.map(::axum::body::Body::new)
    });
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(::axum::serve(listener, app).await?)
}

async fn answer<B>(request: Request<B>, members: &Members, drops: &Drops) -> Response<Events>
where
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    if request.uri().path() == PUBLISH {
        let mut response = Response::new(Events(None));
        match order(request).await {
            Ok(order) => order.run(sleep, |text| publish(&encoded(&text), members, drops)).await,
            Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
        }
        return response;
    }
    let (sender, events) = mpsc::channel(QUEUE);
    members.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    let mut response = Response::new(Events(Some(events)));
    for (name, value) in [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn order<B>(request: Request<B>) -> Outcome<Order>
where
    B: http_body::Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let text = request.into_body().collect().await?.to_bytes();
    Order::parse(std::str::from_utf8(&text)?)
}

fn encoded(text: &str) -> Bytes {
    format!("data: {text}\n\n").into()
}

fn publish(event: &Bytes, members: &Members, drops: &Drops) {
    members.lock().unwrap_or_else(PoisonError::into_inner).retain(|member| {
        match member.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                drops.add(1);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    });
}
