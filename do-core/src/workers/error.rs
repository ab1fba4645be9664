//! Errors on their way between Rust and JavaScript.
//!
//! What crosses a stub keeps its class, its message and its own enumerable properties (rule B12). So an error of
//! ours carries its kind in properties, and one of the platform is read by the platform's flags.

use crate::{Error, ErrorKind, Failure};
use js_sys::Reflect;
use wasm_bindgen::JsValue;

const KIND: &str = "doKind";
const NAME: &str = "doName";
const SQL_CODE: &str = "doSqlCode";
const OF_REQUEST: &str = "doOfRequest";
const INDEFINITE: &str = "doIndefinite";

/// In the text of a commit that failed for constraints deferred to it.
const VIOLATED: &str = "constraints were violated";

/// Every kind by the name that it crosses under.
const KINDS: [(ErrorKind, &str); 13] = [
    (ErrorKind::Invalid, "invalid"),
    (ErrorKind::Limit, "limit"),
    (ErrorKind::NotFound, "not_found"),
    (ErrorKind::NotInEvent, "not_in_event"),
    (ErrorKind::Closed, "closed"),
    (ErrorKind::Sql, "sql"),
    (ErrorKind::Application, "application"),
    (ErrorKind::Reset, "reset"),
    (ErrorKind::Transient, "transient"),
    (ErrorKind::Overloaded, "overloaded"),
    (ErrorKind::Deadline, "deadline"),
    (ErrorKind::Shutdown, "shutdown"),
    (ErrorKind::Platform, "platform"),
];

/// The error as an exception.
pub(super) fn thrown(error: &Error) -> JsValue {
    let exception = js_sys::Error::new(&error.to_string());
    let set = |key: &str, value: &JsValue| {
        // Fails only for an object that cannot be extended, which a new one is not.
        let _ = Reflect::set(&exception, &key.into(), value);
    };
    let kind = KINDS.iter().find(|(kind, _)| *kind == error.kind()).map_or("platform", |(_, name)| name);
    set(KIND, &kind.into());
    if error.name() != "Error" {
        exception.set_name(error.name());
        set(NAME, &error.name().into());
    }
    if let Some(code) = error.sql_code() {
        set(SQL_CODE, &code.into());
    }
    if error.is_of_request() {
        set(OF_REQUEST, &JsValue::TRUE);
    }
    if error.is_indefinite() {
        set(INDEFINITE, &JsValue::TRUE);
    }
    exception.into()
}

/// What a handler failed with, as an exception.
pub(super) fn thrown_failure(failure: Failure) -> JsValue {
    thrown(&failure.into_error())
}

/// An exception of the platform, or of an object of ours that was called.
pub(super) fn caught(exception: &JsValue) -> Error {
    let text = |key: &str| property(exception, key).and_then(|value| value.as_string());
    let flag = |key: &str| property(exception, key).is_some_and(|value| value.is_truthy());
    let message = text("message").or_else(|| exception.as_string());
    let message = message.unwrap_or_else(|| "something that is no error was thrown".to_owned());
    let ours = text(KIND).and_then(|name| KINDS.iter().find(|(_, known)| *known == name));
    let kind = match ours {
        Some((kind, _)) => *kind,
        // C6: the same call will fail again. The platform flags it like other resets.
        None if message.contains(VIOLATED) => ErrorKind::Sql,
        None if flag("overloaded") => ErrorKind::Overloaded,
        None if flag("durableObjectReset") => ErrorKind::Reset,
        None if flag("retryable") => ErrorKind::Transient,
        None if flag("remote") => ErrorKind::Application,
        None => ErrorKind::Platform,
    };
    let code =
        text(SQL_CODE).or_else(|| (kind == ErrorKind::Sql).then(|| sql_code(&message))?.map(str::to_owned));
    let mut error = Error::new(kind, message);
    if let Some(name) = text(NAME).or_else(|| text("name")).filter(|name| name != "Error") {
        error = error.with_name(name);
    }
    if let Some(code) = code {
        error = error.with_sql_code(code);
    }
    if flag(OF_REQUEST) {
        error = error.of_request();
    }
    // A failed commit too: which turn of the call it was, and whether another one was kept before, is not told.
    let of_commit = ours.is_none() && kind == ErrorKind::Sql;
    if flag(INDEFINITE) || of_commit || (kind == ErrorKind::Overloaded && flag("durableObjectReset")) {
        error = error.of_reset();
    }
    if ours.is_some() || flag("remote") { error.remote() } else { error }
}

/// An exception of [`exec`](crate::SqlStorage::exec). The platform gives SQLite's code in the text only (rule F10).
pub(super) fn caught_sql(exception: &JsValue) -> Error {
    let error = caught(exception);
    let message = error.to_string();
    let Some(code) = sql_code(&message) else {
        return if error.kind() == ErrorKind::Platform {
            Error::new(ErrorKind::Invalid, message)
        } else {
            error
        };
    };
    let kind = if is_fault(code) { ErrorKind::Platform } else { ErrorKind::Sql };
    Error::new(kind, message.as_str()).with_sql_code(code)
}

/// `…: SQLITE_X` or `…: SQLITE_X (extended: SQLITE_X_Y)`; the extended one where there is one.
fn sql_code(message: &str) -> Option<&str> {
    let code = match message.rsplit_once("(extended: ") {
        Some((_, extended)) => extended.strip_suffix(')')?,
        None => message.rsplit_once(": ").map_or(message, |(_, code)| code),
    };
    let is_code = code.starts_with("SQLITE_")
        && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    is_code.then_some(code)
}

/// Whether the storage is to blame instead of the statement; the same list as on the native host.
fn is_fault(code: &str) -> bool {
    let of = |primary: &str| {
        code.strip_prefix(primary).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    [
        "SQLITE_BUSY",
        "SQLITE_CANTOPEN",
        "SQLITE_CORRUPT",
        "SQLITE_INTERNAL",
        "SQLITE_IOERR",
        "SQLITE_MISUSE",
        "SQLITE_NOMEM",
        "SQLITE_NOTADB",
        "SQLITE_PERM",
        "SQLITE_PROTOCOL",
        "SQLITE_READONLY",
    ]
    .into_iter()
    .any(of)
}

/// A property of a value, of whatever type that is.
pub(super) fn property(value: &JsValue, key: &str) -> Option<JsValue> {
    if !value.is_object() {
        return None;
    }
    Reflect::get(value, &key.into()).ok().filter(|found| !found.is_undefined())
}
