//! The scenarios, played by pages.

use crate::driver::{Browser, Outcome, until};
use crate::{object, plain};
use serde_json::json;
use tokio::net::TcpListener;

/// Plays all of them on the page and keeps what each says. One of them waits for seconds, beside the others; of these
/// only one at a time, because a browser opens no more than six connections to one server.
const PLAY: &str = r#"
    const [foreignBase] = arguments;
    window.seen = {};
    window.played = (async () => {
        document.cookie = "who=ann; path=/";
        const { play, scenarios, foreign } = await import("/scenarios.js");
        const known = { EventSource, knows: { idsWithoutData: true, idsPersist: true, idsEnd: true, idsOfAnyKind: true }, origin: location.origin };
        const one = async (world, name, all) => {
            seen[name] = await play(world, name, all).catch((error) => `FAILED ${error.message}`);
        };
        const own = { ...known, base: location.origin, prefix: "chromium" };
        const slow = "retry is honoured";
        const beside = one(own, slow, scenarios);
        for (const name of Object.keys(scenarios)) if (name !== slow) await one(own, name, scenarios);
        const other = { ...known, base: foreignBase, prefix: "foreign" };
        for (const name of Object.keys(foreign)) await one(other, name, foreign);
        await beside;
    })().then(() => "all", (error) => `FAILED ${error}`).then((how) => (window.done = how));
"#;

/// A page of each server, which is the other's foreign page.
pub(crate) async fn of_event_source(browser: &mut Browser) -> Outcome {
    let data = tempfile::tempdir()?;
    let (objects, hubs) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    let address =
        |listener: &TcpListener| Ok::<_, std::io::Error>(format!("http://{}", listener.local_addr()?));
    let servers = [("objects", address(&objects)?), ("plain", address(&hubs)?)];
    plain::serve(hubs);
    let _host = object::serve(objects, data.path()).map_err(|error| format!("{error:?}"))?;

    let mut failed = Vec::new();
    for (number, (server, base)) in servers.iter().enumerate() {
        let page = browser.open(server, &format!("{base}/")).await?;
        let other = servers.iter().rev().nth(number).map(|(_, base)| base);
        page.execute(PLAY, vec![json!(other)]).await?;
        until(&page, "all are played", "window.done !== undefined").await?;
        if page.execute("return window.done", Vec::new()).await? != "all" {
            return Err("the scenarios cannot be loaded".into());
        }
        let seen = page.execute("return window.seen", Vec::new()).await?;
        for (name, said) in seen.as_object().into_iter().flatten() {
            println!("{server}: {name}: {}", said.as_str().unwrap_or_default());
            if said.as_str().is_none_or(|said| said.starts_with("FAILED")) {
                failed.push(format!("{server}: {name}"));
            }
        }
        let count = seen.as_object().map_or(0, serde_json::Map::len);
        if count < SCENARIOS {
            return Err(format!("{count} scenarios were played").into());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Fewer means that some were not played.
const SCENARIOS: usize = 26;
