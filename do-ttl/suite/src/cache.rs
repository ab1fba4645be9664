//! The ready object: what it answers to requests as they are, and what its stub makes of them.

use do_core::{
    Body, Env, Failure, Keys, Namespace, Request, Response, Stub, reply, testing::percent_decoded,
};
use do_ttl::{Put, PutIfAbsent, Swap, Ttl, TtlCacheStub};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a [`TtlCache`](do_ttl::TtlCache) is asked, by the entry of the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheCommand {
    /// A request: method, path, headers, and the body as text. Gives the status, the headers and the body.
    Http(String, String, Vec<(String, String)>, String),
    /// All that the stub does with a key that is not there, and leaves nothing. Gives what came of it.
    Stub(String),
}

/// Most bytes of an answer.
const ANSWER: usize = 4 << 20;

/// The entry's answer to a list of commands for the object of a percent-encoded name.
pub(crate) async fn answer<E: Env>(request: Request, name: &str, env: &E) -> Result<Response, Failure> {
    let object = env.namespace("CACHE")?.named(percent_decoded(name)?)?;
    let commands: Vec<CacheCommand> = request.into_body().json(ANSWER).await?;
    let mut values = Vec::new();
    for command in commands {
        values.push(match command {
            CacheCommand::Http(method, path, headers, body) => {
                http(&object, (&method, &path), headers, body).await?
            }
            CacheCommand::Stub(key) => stub(TtlCacheStub::new(object.clone()), &key).await?,
        });
    }
    Ok(reply::json(&values)?)
}

async fn http(
    object: &impl Stub,
    (method, path): (&str, &str),
    headers: Vec<(String, String)>,
    body: String,
) -> Result<Value, Failure> {
    let mut request = http::Request::builder().method(method).uri(format!("http://cache{path}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = if body.is_empty() { Body::empty() } else { body.into() };
    let (parts, body) = object.fetch(request.body(body)?).await?.into_parts();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().ok())));
    let headers: serde_json::Map<_, _> = headers.collect();
    let body = body.bytes(ANSWER).await?;
    Ok(json!([parts.status.as_u16(), headers, String::from_utf8_lossy(&body)]))
}

async fn stub<St: Stub>(cache: TtlCacheStub<St>, key: &str) -> Result<Value, Failure> {
    let absent = (cache.get(key).await?, cache.contains(key).await?, cache.take(key).await?);
    let put = cache.put(key, &b"\0\xff\n"[..], Ttl::secs(60)).await?;
    let entry = cache.get_entry(key).await?.ok_or_else(|| Failure::msg("it is not there"))?;
    let Put::Stored { version, expires } = put else { return Err(Failure::msg("it was removed")) };
    let is_same = (entry.version, entry.expires, &entry.value[..]) == (version, expires, &b"\0\xff\n"[..]);
    let there = (cache.contains(key).await?, cache.touch(key, Ttl::NEVER).await?);
    let listed = cache.list(Keys::all()).await?;
    let is_listed = listed.entries.iter().any(|(at, found)| at == key && found.value == entry.value);
    let many = cache.get_many([key, "none"]).await?;
    let is_present = matches!(cache.put_if_absent(key, "", Ttl::NEVER).await?, PutIfAbsent::Present(_));
    let swap = cache.compare_and_swap(key, version, "2", Ttl::NEVER).await?;
    let again = cache.compare_and_swap(key, version, "3", Ttl::NEVER).await?;
    let swapped = (matches!(swap, Swap::Done(_)), matches!(again, Swap::Differs(Some(_))));
    let taken = cache.take(key).await?.map(|entry| String::from_utf8_lossy(&entry.value).into_owned());
    let puts = cache.put_many([(key, "4", Ttl::NEVER), ("z", "", Ttl::secs(1))]).await?.len();
    let removed = (cache.remove(key).await?, cache.remove_many([key, "z"]).await?, cache.clear().await?);
    Ok(json!({
        "absent": absent == (None, false, None),
        "same": is_same,
        "there": there,
        "listed": is_listed,
        "many": many.iter().map(Option::is_some).collect::<Vec<_>>(),
        "present": is_present,
        "swapped": swapped,
        "taken": taken,
        "puts": puts,
        "removed": removed,
        "count": cache.count().await?,
        "counted": cache.stats().await?.counters.puts,
    }))
}
