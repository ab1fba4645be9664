//! The feeds as any server has them: no object, no host, an axum handler.

use crate::control::{Place, Wanted, invalid, open_to_all, page, parse, split};
use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use do_core::{Error, ErrorKind};
use do_sse::Hub;
use http::{HeaderMap, StatusCode};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// Most bytes of what is said to a feed.
const MOST: usize = 4 * 1_024 * 1_024;

type Places = Arc<Mutex<HashMap<String, Made>>>;

/// A hub, and what keeps its heart beating; that ends with it.
struct Made {
    place: Arc<Place<Hub>>,
    beating: JoinHandle<()>,
}

impl Drop for Made {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

async fn answer(State(places): State<Places>, request: Request) -> Response {
    if let Some((kind, text)) = page(request.uri().path()) {
        return ([("content-type", kind)], text).into_response();
    }
    respond(&places, request).await.unwrap_or_else(|error| {
        let mut headers = HeaderMap::new();
        open_to_all(&mut headers);
        (StatusCode::BAD_REQUEST, headers, error.to_string()).into_response()
    })
}

async fn respond(places: &Places, request: Request) -> Result<Response, Error> {
    let path = request.uri().path().to_owned();
    let (name, what) = split(&path);
    let find = || {
        let places = places.lock().unwrap_or_else(PoisonError::into_inner);
        let place = places.get(name).map(|made| Arc::clone(&made.place));
        place.ok_or_else(|| Error::new(ErrorKind::Invalid, "no feed was made here"))
    };
    if what == "events" {
        let place = find()?;
        if let Some(away) = place.come(&request)? {
            return Ok(away.map(Body::new));
        }
        return Ok(place.prepare(place.feed.open(&request), &request).start()?.map(Body::new));
    }
    let body = axum::body::to_bytes(request.into_body(), MOST).await.map_err(invalid)?;
    let mut response = match what {
        "make" => {
            let wanted: Wanted = parse(&body)?;
            let hub = Hub::new(wanted.settings()?);
            let beating = hub.clone();
            let beating = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(beating.tick()).await;
                }
            });
            let made = Made { place: Arc::new(Place::new(hub, wanted)), beating };
            places.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), made);
            "made".into_response()
        }
        "do" => find()?.act(&body)?.to_string().into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    };
    open_to_all(response.headers_mut());
    Ok(response)
}

/// Serves until the runtime ends.
pub(crate) fn serve(listener: TcpListener) {
    let app = axum::Router::new().fallback(answer).with_state(Places::default());
    tokio::spawn(async move { axum::serve(listener, app).await });
}
