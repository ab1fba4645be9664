use super::{namespace::HostNamespace, serve::sendable};
use crate::{Body, Error, Namespace, ObjectName, Response, Stub, reply};
use bytes::Bytes;
use http::Request;
use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A namespace as a service of tower and of hyper: each request goes to the object that `route` names.
///
/// Errors become responses, by [`reply::error`]. In plain hyper the connection must be served `with_upgrades()`,
/// or no WebSocket can be accepted.
///
/// When a client is taken for gone is up to the server. hyper, and with it axum, by default drops one that ends its side
/// of the connection, even if it goes on reading, at once. With hyper's `half_close(true)` it goes on reading, but one that
/// closed is noticed with the second write after it rather than the first, and one that resets not before the next write.
/// [`Host::serve`](super::Host::serve) does as Workers do (rule B17).
#[derive(Clone)]
pub struct NamespaceService<R> {
    namespace: HostNamespace,
    route: R,
}

impl HostNamespace {
    /// Mounts the namespace. `route` names the object of a request.
    ///
    /// ```no_run
    /// # fn mount(host: &do_core::tokio::Host) -> do_core::Result<axum::Router> {
    /// use do_core::ObjectName;
    ///
    /// let rooms = host.namespace("ROOM")?.service(|request| ObjectName::new(request.uri.path()));
    /// let app = axum::Router::new().fallback_service(rooms);
    /// # Ok(app) }
    /// ```
    pub fn service<R>(&self, route: R) -> NamespaceService<R>
    where
        R: Fn(&http::request::Parts) -> Result<ObjectName, Error>,
    {
        NamespaceService { namespace: self.clone(), route }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

impl<R> NamespaceService<R>
where
    R: Fn(&http::request::Parts) -> Result<ObjectName, Error>,
{
    fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: http_body::Body<Data = Bytes, Error: fmt::Display> + Send + 'static,
    {
        let (head, body) = request.into_parts();
        let method = head.method.clone();
        let call = (self.route)(&head)
            .and_then(|name| self.namespace.named(name))
            .map(|stub| stub.fetch(Request::from_parts(head, Body::from_http(body))));
        Box::pin(async move {
            let result = match call {
                Ok(call) => call.await,
                Err(error) => Err(error),
            };
            Ok(sendable(&method, result.unwrap_or_else(|error| reply::error(&error))))
        })
    }
}

impl<R, B> tower_service::Service<Request<B>> for NamespaceService<R>
where
    R: Fn(&http::request::Parts) -> Result<ObjectName, Error>,
    B: http_body::Body<Data = Bytes, Error: fmt::Display> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        self.answer(request)
    }
}

impl<R, B> hyper::service::Service<Request<B>> for NamespaceService<R>
where
    R: Fn(&http::request::Parts) -> Result<ObjectName, Error>,
    B: http_body::Body<Data = Bytes, Error: fmt::Display> + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answer;

    fn call(&self, request: Request<B>) -> Answer {
        self.answer(request)
    }
}

impl<R> fmt::Debug for NamespaceService<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceService").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
