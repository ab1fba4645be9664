use super::{life::calls_on, thrown::Thrown};
use crate::{Env, Error, ErrorKind, Failure, Namespace, ObjectName, Request, Response, Stub, reply};
use http::StatusCode;
use serde_json::{Value, json};
use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// The entry of a host under test, a Worker's and a native one's alike.
///
/// | path | answer |
/// |---|---|
/// | `/run/NAMESPACE/NAME`, `/ws/NAMESPACE/NAME` | the object's, by name |
/// | `/kept/NAMESPACE/NAME` | as `/run`, over a stub that an earlier request made |
/// | `/calls/NAMESPACE/NAME` | what the calls gave that the body lists, made on one stub without waiting |
/// | `/run-id/NAMESPACE/ID` | the object's, by the text of its id |
/// | `/id/NAMESPACE/NAME` | the id of a name, as JSON text |
/// | `/panic/NAMESPACE/` | a panic of the entry |
/// | `/unique/NAMESPACE/` | a new id, as JSON text |
///
/// Names are percent-encoded, slashes too. An error is answered with 500 and `{"error": ..}`, a [`Thrown`].
///
/// # Errors
/// None but what makes the answer inexpressible.
pub async fn route<E: Env>(request: Request, env: E) -> Result<Response, Failure> {
    match answer(request, &env).await {
        Ok(response) => Ok(response),
        Err(failure) => {
            let mut response = reply::json(&json!({ "error": Thrown::from(&Error::from(failure)) }))?;
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            Ok(response)
        }
    }
}

async fn answer<E: Env>(request: Request, env: &E) -> Result<Response, Failure> {
    let path = request.uri().path().to_owned();
    let mut parts = path.splitn(4, '/').skip(1);
    let (Some(what), Some(namespace), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::new(ErrorKind::NotFound, "expected /WHAT/NAMESPACE/NAME").into());
    };
    let (objects, rest) = (env.namespace(namespace)?, percent_decoded(rest)?);
    Ok(match what {
        "run" | "ws" => objects.named(rest)?.fetch(request).await?,
        "calls" => {
            let calls: Vec<Value> = request.into_body().json(1 << 20).await?;
            reply::json(&calls_on(&objects.named(rest)?, &calls).await?)?
        }
        "kept" => kept::<E>(&objects, rest)?.fetch(request).await?,
        "run-id" => objects.get(&objects.parse_id(&rest)?)?.fetch(request).await?,
        "id" => reply::json(&objects.id_of(&ObjectName::new(rest)?)?.to_string())?,
        #[allow(clippy::panic)] // what the path is for
        "panic" => panic!("the entry was told to panic"),
        "unique" => reply::json(&objects.unique_id()?.to_string())?,
        _ => return Err(Error::new(ErrorKind::NotFound, format!("nothing is under /{what}")).into()),
    })
}

/// Stubs by the names of their objects, kept over the requests of the entry.
static KEPT: Mutex<BTreeMap<String, Box<dyn Any + Send + Sync>>> = Mutex::new(BTreeMap::new());

type StubIn<E> = <<E as Env>::Namespace as Namespace>::Stub;

fn kept<E: Env>(objects: &E::Namespace, name: String) -> Result<StubIn<E>, Error> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stub) = kept.get(&name).and_then(|stub| stub.downcast_ref::<StubIn<E>>()) {
        return Ok(stub.clone());
    }
    let stub = objects.named(name.as_str())?;
    kept.insert(name, Box::new(stub.clone()));
    Ok(stub)
}

/// The text that was percent-encoded.
///
/// # Errors
/// [`ErrorKind::Invalid`] for half an escape, and for what is no UTF-8.
pub fn percent_decoded(text: &str) -> Result<String, Error> {
    let wrong = || Error::new(ErrorKind::Invalid, format!("{text:?} is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|d| u8::try_from(d).ok());
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push(high << 4 | low),
            _ => return Err(wrong()),
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// Percent-encodes everything that is not plain in a path segment and in a query.
pub fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_again_and_what_is_malformed_is_refused() {
        for text in ["", "a", "a/b c", "é\0.%41", "..", "?x=1&y#"] {
            let encoded = percent_encoded(text);
            assert!(encoded.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_%".contains(&b)), "{encoded}");
            assert_eq!(percent_decoded(&encoded).unwrap(), text);
        }
        for wrong in ["%", "%4", "%zz", "%FF"] {
            assert_eq!(percent_decoded(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
        }
    }
}
