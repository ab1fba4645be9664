use crate::{answer, origin, page, report, room};
use do_core::prelude::*;
use do_sync::Refusal;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;

/// The name under which the room's namespace is bound.
pub(crate) const BINDING: &str = "SYNC_ROOM";

/// The variable with the room's name; natively the canonical path of the watched root.
const ROOM: &str = "ROOM";

/// The room where the variable is not set.
const DEFAULT_ROOM: &str = "sync";

/// The variable that is `1` when only this machine reaches the listener.
const LOOPBACK: &str = "LOOPBACK";

/// The room answers in milliseconds; a client is not left without an answer when it does not.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long the body of a report may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// After how long an `EventSource` comes back that cannot be let in now.
const AGAIN: Duration = Duration::from_secs(5);

/// The answer to a request that does not reach the room. Boxed, because it is rare and large.
type Refused = Box<Response>;

fn refuse(status: StatusCode, text: &str) -> Refused {
    Box::new(answer::error(status, text))
}

/// Whether the server takes new work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// It does.
    #[default]
    Serving,
    /// It shuts down: `/healthz`, `/ws` and `/notify` answer 503, `/events` tells clients to come back later.
    Draining,
}

/// The HTTP interface, the same on every host: `GET /`, `GET /client.js`, `GET /ws`, `GET /events`, `GET /healthz` and
/// `POST /notify`.
///
/// Reads the variables `ROOM` (the room's name, `sync` without it) and `LOOPBACK` (`1`: only this machine
/// reaches the listener, so a `Host` that is not loopback is refused), and the namespace `SYNC_ROOM`. Every error
/// has the body `{"error":"text"}`.
///
/// # Errors
/// None: what fails is answered, and logged where it is the server's fault.
pub async fn route<E: Env>(request: Request, env: E) -> Result<Response> {
    route_in(request, env, Phase::Serving).await
}

/// [`route`] for a server that knows when it shuts down. Ask for the phase anew with each request.
///
/// # Errors
/// None, as [`route`].
pub async fn route_in<E: Env>(request: Request, env: E, phase: Phase) -> Result<Response> {
    let head = request.method() == Method::HEAD;
    let response =
        match request.uri().path() {
            "/" => allow(&request, &[Method::GET, Method::HEAD])
                .map_or_else(|refused| *refused, |()| page::page()),
            "/client.js" => allow(&request, &[Method::GET, Method::HEAD])
                .map_or_else(|refused| *refused, |()| do_sync::client_js(request.headers())),
            "/healthz" => allow(&request, &[Method::GET, Method::HEAD])
                .map_or_else(|refused| *refused, |()| health(phase)),
            "/ws" => match open_socket(&request, &env, phase) {
                Ok(()) => ask_room(&env, request).await,
                Err(refused) => *refused,
            },
            "/events" => match open_stream(&request, &env, phase) {
                Ok(()) => ask_for_stream(&env, request).await,
                Err(refused) => *refused,
            },
            "/notify" => match checked_report(request, &env, phase).await {
                Ok(request) => ask_room(&env, request).await,
                Err(refused) => *refused,
            },
            _ => answer::error(StatusCode::NOT_FOUND, "there is nothing at this address"),
        };
    Ok(if head { without_body(response) } else { response })
}

fn health(phase: Phase) -> Response {
    match phase {
        Phase::Serving => reply::text("ok"),
        Phase::Draining => draining(),
    }
}

/// Whether the request is a WebSocket handshake that the room may have.
fn open_socket<E: Env>(request: &Request, env: &E, phase: Phase) -> Result<(), Refused> {
    allow(request, &[Method::GET])?;
    admit(request, env, phase)?;
    Refusal::of(request).map_or(Ok(()), |refusal| {
        Err(Box::new(refusal.response(answer::error(refusal.status(), &refusal.to_string()))))
    })
}

/// Whether the room may have a reader of events. Only a foreign one is refused: what passes is answered so that an
/// `EventSource`, which takes 503 for the end, comes back.
fn open_stream<E: Env>(request: &Request, env: &E, phase: Phase) -> Result<(), Refused> {
    allow(request, &[Method::GET, Method::HEAD])?;
    admit(request, env, Phase::Serving)?;
    if phase == Phase::Draining { Err(Box::new(do_sse::later(AGAIN))) } else { Ok(()) }
}

/// The report with its whole body, so that a client that sends slowly does not keep the room waiting.
async fn checked_report<E: Env>(request: Request, env: &E, phase: Phase) -> Result<Request, Refused> {
    allow(&request, &[Method::POST])?;
    admit(&request, env, phase)?;
    if !is_json(request.headers()) {
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the Content-Type is not application/json"));
    }
    let (head, body) = request.into_parts();
    let clock = room_of(env).map_err(|error| Box::new(failed(&error)))?;
    match clock.within(BODY_TIME, report::read(&head.headers, body)).await {
        Ok(Ok(body)) => Ok(http::Request::from_parts(head, body.into())),
        Ok(Err(report::Unread::TooLong)) => Err(Box::new(room::too_large())),
        Ok(Err(report::Unread::Ended)) => Err(refuse(StatusCode::BAD_REQUEST, "the body ended early")),
        Err(_) => {
            let mut late = refuse(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
            late.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            Err(late)
        }
    }
}

/// What holds for everything that reaches the room.
fn admit<E: Env>(request: &Request, env: &E, phase: Phase) -> Result<(), Refused> {
    if phase == Phase::Draining {
        return Err(Box::new(draining()));
    }
    let loopback = env.var(LOOPBACK).is_ok_and(|value| value == "1");
    origin::check(request.uri(), request.headers(), loopback)
        .map_err(|foreign| refuse(StatusCode::FORBIDDEN, &foreign.to_string()))?;
    if origin::is_host_sound(request.headers()) {
        Ok(())
    } else {
        // The room could not be asked: what it sees has a full address.
        Err(refuse(StatusCode::BAD_REQUEST, "the Host header is malformed"))
    }
}

fn allow(request: &Request, methods: &[Method]) -> Result<(), Refused> {
    if methods.contains(request.method()) {
        return Ok(());
    }
    let mut refused = refuse(StatusCode::METHOD_NOT_ALLOWED, "this address does not have this method");
    let list = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    if let Ok(list) = HeaderValue::try_from(list) {
        refused.headers_mut().insert(header::ALLOW, list);
    }
    Err(refused)
}

/// `application/json` in any case, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.and_then(|value| value.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn room_of<E: Env>(env: &E) -> Result<<E::Namespace as Namespace>::Stub, Error> {
    env.namespace(BINDING)?.named(env.var(ROOM).unwrap_or_else(|_| DEFAULT_ROOM.to_owned()))
}

async fn ask_room<E: Env>(env: &E, request: Request) -> Response {
    answer_of(env, request).await.unwrap_or_else(|error| failed(&error))
}

async fn ask_for_stream<E: Env>(env: &E, request: Request) -> Response {
    answer_of(env, request).await.unwrap_or_else(|error| {
        let answer = do_sse::error(&error);
        if answer.status() == StatusCode::OK { answer } else { failed(&error) }
    })
}

async fn answer_of<E: Env>(env: &E, request: Request) -> Result<Response, Error> {
    room_of(env)?.fetch_within(DEADLINE, request).await
}

/// The answer when the room gave none. The reason is for the log, not for the client.
fn failed(error: &Error) -> Response {
    match error.kind() {
        ErrorKind::Overloaded => {
            let mut busy = answer::error(StatusCode::SERVICE_UNAVAILABLE, "the room has too much to do");
            busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            busy
        }
        ErrorKind::Shutdown => draining(),
        ErrorKind::Deadline => answer::error(StatusCode::GATEWAY_TIMEOUT, "the room did not answer in time"),
        _ => {
            tracing::error!(?error, "the room failed");
            answer::error(StatusCode::INTERNAL_SERVER_ERROR, "the server failed")
        }
    }
}

fn draining() -> Response {
    answer::error(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down")
}

/// The answer to HEAD: the headers of GET, the length of the body among them (RFC 9110 section 9.3.2). That of a stream has
/// no body any more.
fn without_body(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    http::Response::from_parts(head, Body::empty())
}

#[cfg(test)]
mod tests;
