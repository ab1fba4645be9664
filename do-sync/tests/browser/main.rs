//! The JavaScript client in real Chromium: a room that dies and returns, a network that goes and comes back, a second
//! tab of the same member.
//!
//! Needs `chromium` and `chromedriver` on `PATH`; `cargo xtask test --only browser` installs them. One story, because
//! starting browsers is the dear part.
#![cfg(not(target_arch = "wasm32"))]

mod driver;
#[path = "../../../examples/sync-server/tests/common/program.rs"]
mod program;
mod scripted;

use driver::{Browser, Outcome, PATIENCE, until};
use fantoccini::Client;
use scripted::Room;
use serde_json::json;
use tokio::time::timeout;

#[tokio::test]
async fn a_page_keeps_its_room_through_restarts_lost_networks_and_second_tabs() {
    let mut browser = Browser::start().await.unwrap();
    let outcome = timeout(4 * PATIENCE, story(&mut browser)).await;
    let outcome = outcome.unwrap_or_else(|_| Err("the story did not end".into()));
    if let Err(error) = browser.finish(outcome).await {
        panic!("{error}");
    }
}

/// The page has had exactly these messages, in this order.
fn had(messages: &[&str]) -> String {
    format!("JSON.stringify(seen.data) === {:?}", json!(messages).to_string())
}

async fn story(browser: &mut Browser) -> Outcome {
    let room = Room::default();
    let server = room.serve("127.0.0.1:0").await?;
    let page = |member: &str| format!("http://{}/?member={member}", server.address);

    // Messages, history and presence.
    let ann = browser.open("ann", &page("ann")).await?;
    until(&ann, "she is in the room", "window.client?.state === 'open'").await?;
    until(&ann, "alone", "client.count === 1 && client.members.has('ann')").await?;
    room.publish("ann", &json!("1"));
    room.publish_binary("ann", &[2, 255]);
    until(&ann, "she gets both kinds", &had(&["1", "ann: 2,255"])).await?;
    let bob = browser.open("bob", &page("bob")).await?;
    until(&bob, "who comes late gets the history", &had(&["1", "ann: 2,255"])).await?;
    until(&bob, "and knows it as such", "seen.replayed === 1 && client.count === 2").await?;
    until(&ann, "she sees him come", "seen.joined.at(-1) === 'bob' && client.count === 2").await?;
    until(&ann, "she speaks", "client.send('3') === 'sent'").await?;
    until(&bob, "he hears", &had(&["1", "ann: 2,255", "3"])).await?;
    until(&bob, "and does not say too much", "client.send('x'.repeat(1001)) === 'refused'").await?;

    // The server dies. One message is in the log that nobody has, one in the queue of a page.
    let address = server.address.clone();
    server.kill(&room).await;
    until(&ann, "she notices", "client.state === 'waiting' || client.state === 'connecting'").await?;
    until(&bob, "he too", "seen.closes > 0").await?;
    until(&ann, "she speaks on", "client.send('5') === 'queued' && client.bufferedAmount > 0").await?;
    room.publish("bob", &json!("4"));
    let server = room.serve(&address).await?;
    let all = ["1", "ann: 2,255", "3", "4", "5"];
    for page in [&ann, &bob] {
        until(page, "all are there, once and in order", &had(&all)).await?;
        until(page, "because it continued", "seen.gaps.length === 0 && seen.resumed === 1").await?;
    }
    assert_eq!(room.asked().iter().filter(|after| after.starts_with("k3x-")).count(), 2);

    // A hole in the sequence: the page finds it and fills it.
    room.publish_to_nobody(&json!("6"));
    room.publish("", &json!("7"));
    let all = [&all[..], &["6", "7"]].concat();
    until(&ann, "the hole is filled", &had(&all)).await?;
    until(&bob, "for all", &had(&all)).await?;

    // The page is loaded anew and continues where it was.
    bob.refresh().await?;
    room.publish("ann", &json!("8"));
    until(&bob, "he gets only what is new", &had(&["8"])).await?;
    until(&bob, "and missed nothing", "seen.gaps.length === 0 && seen.resumed === 1").await?;

    // Without a network nothing is tried in vain, and with it at once: the pause would be an hour.
    until(&ann, "she has it", &had(&[&all[..], &["8"]].concat())).await?;
    network(browser, &ann, &room).await?;

    // A second tab of the same member.
    let tab = browser.open("ann again", &format!("http://{address}/?member=ann")).await?;
    until(&ann, "the older one stops", "client.state === 'stopped' && client.code === 4500").await?;
    until(&tab, "the newer one is there", "window.client?.state === 'open'").await?;
    room.publish("bob", &json!("last"));
    until(&tab, "and stays", "seen.data.at(-1) === 'last' && seen.opened === 1").await?;
    until(&ann, "the older one is out", "client.state === 'stopped' && seen.data.at(-1) !== 'last'").await?;
    browser.leave("bob").await?;
    until(&tab, "he is gone", "seen.left.at(-1) === 'bob' && client.count === 1").await?;
    server.kill(&room).await;
    Ok(())
}

async fn network(browser: &Browser, page: &Client, room: &Room) -> Outcome {
    browser.offline(page, true).await?;
    until(page, "the browser says so", "navigator.onLine === false").await?;
    room.hang_up("ann");
    until(page, "it waits", "client.state === 'waiting' && seen.pause === 3600000").await?;
    room.publish("bob", &json!("9"));
    browser.offline(page, false).await?;
    until(page, "it is back", "client.state === 'open' && seen.data.at(-1) === '9'").await
}
