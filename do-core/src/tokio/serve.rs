//! A plain HTTP/1.1 server for those who need no framework.

use super::{host::Host, namespace::HostEnv, wire::Wire};
use crate::{
    Body, Failure, Request, Response,
    answered::{answered, internal_error},
};
use http::{Method, StatusCode, header};
use http_body::Body as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioTimer;
use std::{
    convert::Infallible,
    future::Future,
    io::ErrorKind::{ConnectionAborted, ConnectionReset},
    pin::pin,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

/// How long a client may take to send the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// After a failed accept, most likely because there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The servers of a host, to end them with it.
pub(super) struct Serving {
    stop: watch::Sender<bool>,
    /// Every server and connection holds a clone of the sender; all are gone when the receiver ends.
    alive: mpsc::Sender<Infallible>,
    ended: mpsc::Receiver<Infallible>,
}

impl Serving {
    pub(super) fn new() -> Self {
        let (alive, ended) = mpsc::channel(1);
        Self { stop: watch::Sender::new(false), alive, ended }
    }

    /// Ends the servers; connections get `grace` to finish what they are sending.
    pub(super) async fn stop(&mut self, grace: Duration) {
        self.stop.send_replace(true);
        let (alone, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.alive, alone));
        let _ = timeout(grace, self.ended.recv()).await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Host {
    /// Serves HTTP/1.1 on a listener, from now on until the host ends, on the runtime of the caller. `route`
    /// answers each request, as the entry of a Worker does; its failures become responses by
    /// [`reply::error`](crate::reply::error).
    ///
    /// Clients leave as they do on Workers (rule B17). One that ends only its own side of the connection still gets its
    /// answer, and goes on reading it. From that, one that closed cannot be told but by writing to it: the next write
    /// succeeds, and then the body of the response is closed, about as soon as what was written has arrived. One that
    /// resets is gone at once. So an open response to a client that may be gone has to be written to now and then.
    ///
    /// Options of accepted sockets, such as buffer sizes, are set on the listener, from which they inherit them.
    /// For TLS, HTTP/2 or middleware, mount [`service`](super::HostNamespace::service) in a server of your own.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn serve<F, R>(&self, listener: TcpListener, route: F)
    where
        F: Fn(Request, HostEnv) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<Response, Failure>> + Send + 'static,
    {
        let (env, alive) = (self.env(), self.serving.alive.clone());
        let mut stop = self.serving.stop.subscribe();
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stopped(&mut stop) => return,
                };
                match accepted {
                    Ok((stream, _)) => {
                        let (route, env, stop, alive) =
                            (route.clone(), env.clone(), stop.clone(), alive.clone());
                        tokio::spawn(async move {
                            connection(stream, route, env, stop).await;
                            drop(alive);
                        });
                    }
                    // The client went away while it waited in the queue.
                    Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        });
    }
}

async fn connection<F, R>(stream: TcpStream, route: F, env: HostEnv, mut stop: watch::Receiver<bool>)
where
    F: Fn(Request, HostEnv) -> R,
    R: Future<Output = Result<Response, Failure>>,
{
    let _ = stream.set_nodelay(true); // events are small and wanted at once
    let service = service_fn(async |request: http::Request<Incoming>| {
        let method = request.method().clone();
        let answer = async { route(request.map(Body::from_http), env.clone()).await };
        Ok::<_, Infallible>(sendable(&method, answered(answer).await))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .half_close(true)
        .serve_connection(Wire::new(stream), service)
        .with_upgrades();
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stopped(&mut stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

/// The response as HTTP can send it, which is the same on Workers: no body with 204, 205 and 304, and instead of a status
/// that ends no exchange, or of a 101 that switches to nothing, what any other fault of the code gives. A length that is
/// not that of the body is left out; to HEAD it is that of another body (RFC 9110 section 9.3.2).
pub(crate) fn sendable(method: &Method, mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    let said = response.headers().get(header::CONTENT_LENGTH);
    if let (Some(length), Some(said)) = (length, said)
        && said.to_str().ok().and_then(|said| said.parse().ok()) != Some(length)
        && method != Method::HEAD
        && response.status() != StatusCode::NOT_MODIFIED
    {
        tracing::warn!(?said, length, "the Content-Length of a response is not that of its body");
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    match response.status().as_u16() {
        101 if response.headers().contains_key(header::UPGRADE) => response,
        204 | 205 | 304 => response.map(|_| Body::empty()),
        200..=599 => response,
        status => {
            tracing::error!(status, "a response cannot be sent");
            internal_error()
        }
    }
}

/// Completes when the servers are to end, also when the host is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}
