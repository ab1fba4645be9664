//! The platform's JavaScript interface, as far as this crate uses it.
//!
//! Own declarations where those of `worker-sys` lack a method or let an exception through. Every one here catches:
//! an exception that passes a wasm frame without `catch` leaves its request without an answer for ever, and in a
//! build with panic=abort all others of the isolate as well.

use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::*;
use web_sys::WebSocket;

#[wasm_bindgen]
extern "C" {
    /// `DurableObjectState`.
    #[derive(Clone)]
    pub(super) type ObjectContext;

    #[wasm_bindgen(method, catch, getter)]
    pub(super) fn id(this: &ObjectContext) -> Result<RawId, JsValue>;
    #[wasm_bindgen(method, catch, getter)]
    pub(super) fn storage(this: &ObjectContext) -> Result<Storage, JsValue>;
    #[wasm_bindgen(method, catch, js_name = waitUntil)]
    pub(super) fn wait_until(this: &ObjectContext, work: &Promise) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = blockConcurrencyWhile)]
    pub(super) fn block_concurrency_while(this: &ObjectContext, work: &JsValue) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = acceptWebSocket)]
    pub(super) fn accept(this: &ObjectContext, socket: &WebSocket, tags: &Array) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = getWebSockets)]
    pub(super) fn all_sockets(this: &ObjectContext) -> Result<Array, JsValue>;
    #[wasm_bindgen(method, catch, js_name = getWebSockets)]
    pub(super) fn tagged_sockets(this: &ObjectContext, tag: &str) -> Result<Array, JsValue>;
    #[wasm_bindgen(method, catch, js_name = getTags)]
    pub(super) fn tags(this: &ObjectContext, socket: &WebSocket) -> Result<Array, JsValue>;
    #[wasm_bindgen(method, catch, js_name = setWebSocketAutoResponse)]
    pub(super) fn set_auto_response(this: &ObjectContext, pair: &JsValue) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = getWebSocketAutoResponseTimestamp)]
    pub(super) fn auto_response_at(this: &ObjectContext, socket: &WebSocket) -> Result<JsValue, JsValue>;
}

#[wasm_bindgen]
extern "C" {
    /// `DurableObjectId`.
    pub(super) type RawId;

    #[wasm_bindgen(method, catch, js_name = toString)]
    pub(super) fn to_hex(this: &RawId) -> Result<String, JsValue>;
    #[wasm_bindgen(method, catch, getter)]
    pub(super) fn name(this: &RawId) -> Result<Option<String>, JsValue>;

    /// `DurableObjectNamespace`.
    #[derive(Clone)]
    pub(super) type RawNamespace;

    #[wasm_bindgen(method, catch, js_name = idFromName)]
    pub(super) fn id_from_name(this: &RawNamespace, name: &str) -> Result<RawId, JsValue>;
    #[wasm_bindgen(method, catch, js_name = idFromString)]
    pub(super) fn id_from_string(this: &RawNamespace, text: &str) -> Result<RawId, JsValue>;
    #[wasm_bindgen(method, catch, js_name = newUniqueId)]
    pub(super) fn unique_id(this: &RawNamespace) -> Result<RawId, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(super) fn get(this: &RawNamespace, id: &RawId) -> Result<RawStub, JsValue>;

    /// `DurableObjectStub`.
    #[derive(Clone)]
    pub(super) type RawStub;

    #[wasm_bindgen(method, catch)]
    pub(super) fn fetch(this: &RawStub, request: &web_sys::Request) -> Result<Promise, JsValue>;
}

#[wasm_bindgen]
extern "C" {
    /// `DurableObjectStorage`.
    #[derive(Clone)]
    pub(super) type Storage;

    #[wasm_bindgen(method, catch, getter)]
    pub(super) fn sql(this: &Storage) -> Result<Sql, JsValue>;
    /// Takes a number, not the offset or `Date` that `worker` has.
    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    pub(super) fn set_alarm(this: &Storage, ms: f64) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = getAlarm)]
    pub(super) fn get_alarm(this: &Storage) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = deleteAlarm)]
    pub(super) fn delete_alarm(this: &Storage) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = deleteAll)]
    pub(super) fn delete_all(this: &Storage) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(super) fn sync(this: &Storage) -> Result<Promise, JsValue>;
    /// The closure lives for the call only, so it can borrow.
    #[wasm_bindgen(method, catch, js_name = transactionSync)]
    pub(super) fn transaction(
        this: &Storage,
        body: &mut dyn FnMut() -> Result<JsValue, JsValue>,
    ) -> Result<JsValue, JsValue>;

    /// `SqlStorage`.
    #[derive(Clone)]
    pub(super) type Sql;

    #[wasm_bindgen(method, catch, variadic)]
    pub(super) fn exec(this: &Sql, text: &str, params: &Array) -> Result<Cursor, JsValue>;
    #[wasm_bindgen(method, catch, getter, js_name = databaseSize)]
    pub(super) fn database_size(this: &Sql) -> Result<f64, JsValue>;

    /// `SqlStorageCursor`.
    pub(super) type Cursor;

    #[wasm_bindgen(method, catch)]
    pub(super) fn raw(this: &Cursor) -> Result<js_sys::Iterator, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(super) fn one(this: &Cursor) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, getter, js_name = columnNames)]
    pub(super) fn column_names(this: &Cursor) -> Result<Array, JsValue>;
    #[wasm_bindgen(method, catch, getter, js_name = rowsRead)]
    pub(super) fn rows_read(this: &Cursor) -> Result<f64, JsValue>;
    #[wasm_bindgen(method, catch, getter, js_name = rowsWritten)]
    pub(super) fn rows_written(this: &Cursor) -> Result<f64, JsValue>;
}

#[wasm_bindgen]
extern "C" {
    /// The parts of the platform's `WebSocket` that browsers do not have, or that `web-sys` lets throw.
    #[derive(Clone)]
    pub(super) type HibernatingSocket;

    #[wasm_bindgen(method, catch)]
    pub(super) fn send(this: &HibernatingSocket, message: &JsValue) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = close)]
    pub(super) fn close_empty(this: &HibernatingSocket) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(super) fn close(this: &HibernatingSocket, code: u16, reason: &str) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, getter, js_name = readyState)]
    pub(super) fn ready_state(this: &HibernatingSocket) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, getter, js_name = bufferedAmount)]
    pub(super) fn buffered_amount(this: &HibernatingSocket) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch, js_name = serializeAttachment)]
    pub(super) fn serialize_attachment(this: &HibernatingSocket, value: &JsValue) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch, js_name = deserializeAttachment)]
    pub(super) fn deserialize_attachment(this: &HibernatingSocket) -> Result<JsValue, JsValue>;

    /// `WebSocketPair`: an object with the two ends under `0` and `1`.
    pub(super) type WebSocketPair;

    #[wasm_bindgen(constructor, catch)]
    pub(super) fn new() -> Result<WebSocketPair, JsValue>;

    /// `WebSocketRequestResponsePair`.
    pub(super) type WebSocketRequestResponsePair;

    #[wasm_bindgen(constructor, catch)]
    pub(super) fn new(request: &str, response: &str) -> Result<WebSocketRequestResponsePair, JsValue>;
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = setTimeout)]
    pub(super) fn set_timeout(callback: &Function, ms: i32) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_name = clearTimeout)]
    pub(super) fn clear_timeout(timer: &JsValue) -> Result<(), JsValue>;

    /// `ReadableStream` and its reader, with calls that may throw on a stream that somebody else reads.
    pub(super) type ByteStream;

    #[wasm_bindgen(method, catch, js_name = getReader)]
    pub(super) fn reader(this: &ByteStream) -> Result<ByteReader, JsValue>;
    #[wasm_bindgen(method, catch, js_name = cancel)]
    pub(super) fn cancel_stream(this: &ByteStream) -> Result<Promise, JsValue>;

    pub(super) type ByteReader;

    #[wasm_bindgen(method, catch)]
    pub(super) fn read(this: &ByteReader) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub(super) fn cancel(this: &ByteReader) -> Result<Promise, JsValue>;
}
