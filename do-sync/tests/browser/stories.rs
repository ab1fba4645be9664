//! What a user of the page lives through.

use crate::driver::{Browser, Outcome, until};
use crate::program::Program;
use crate::{real, scripted};
use fantoccini::Client;
use serde_json::json;
use std::path::Path;
use tokio::process::Command;

/// The page has had exactly these messages, in this order.
fn had(messages: &[&str]) -> String {
    format!("JSON.stringify(seen.data) === {:?}", json!(messages).to_string())
}

/// With a real room, whose server is killed as `kill -9` does.
pub(crate) async fn of_a_room_that_dies(browser: &mut Browser) -> Outcome {
    let data = tempfile::tempdir()?;
    let (server, address) = start("127.0.0.1:0", data.path()).await?;
    let page = |member: &str| format!("http://{address}/?member={member}");

    // Messages, history and presence.
    let ann = browser.open("ann", &page("ann")).await?;
    until(&ann, "she is in the room", "window.client?.state === 'open'").await?;
    until(&ann, "alone", "client.member === 'ann' && [...client.members.keys()].join() === 'ann'").await?;
    real::ask(&address, "/publish?text=1").await?;
    real::ask(&address, "/binary?text=2").await?;
    until(&ann, "she gets both kinds", &had(&["1", "undefined: 50"])).await?;
    let bob = browser.open("bob", &page("bob")).await?;
    until(&bob, "who comes late gets the history", &had(&["1", "undefined: 50"])).await?;
    until(&bob, "and knows it as such", "seen.replayed === 1 && client.count === 2").await?;
    until(&ann, "she sees him come", "seen.joined.at(-1) === 'bob' && client.count === 2").await?;
    until(&ann, "she speaks", "client.send('3') === 'sent'").await?;
    until(&bob, "he hears", &had(&["1", "undefined: 50", "3"])).await?;

    // The server is killed and started. What is said meanwhile waits.
    server.kill().await?;
    until(&ann, "she notices", "client.state !== 'open'").await?;
    until(&bob, "he too", "client.state !== 'open'").await?;
    until(&ann, "she speaks on", "client.send('4') === 'queued'").await?;
    let (server, _) = start(&address, data.path()).await?;
    until(&bob, "he hears what waited", &had(&["1", "undefined: 50", "3", "4"])).await?;
    real::ask(&address, "/publish?text=5").await?;
    let mut all = vec!["1", "undefined: 50", "3", "4", "5"];
    for page in [&ann, &bob] {
        until(page, "all are there, once and in order", &had(&all)).await?;
        until(page, "because it continued", "seen.gaps.length === 0 && seen.resumed === 1").await?;
        until(page, "and nobody has left or come again", "seen.left.length === 0 && client.count === 2")
            .await?;
    }
    until(&ann, "each came once", "seen.joined.join() === 'ann,bob'").await?;

    // Away for a while.
    ann.execute("client.close()", Vec::new()).await?;
    until(&ann, "she is away", "client.state === 'stopped' && client.send('6') === 'refused'").await?;
    for text in ["6", "7"] {
        real::ask(&address, &format!("/publish?text={text}")).await?;
        all.push(text);
    }
    until(&bob, "he stays", &had(&all)).await?;
    ann.execute("seen.replayed = 0; client.connect()", Vec::new()).await?;
    until(&ann, "she gets what she missed, and nothing else again", &had(&all)).await?;
    until(&ann, "as old messages", "seen.replayed === 2 && seen.gaps.length === 0").await?;

    // The page is loaded anew and continues where it was.
    bob.refresh().await?;
    until(&bob, "he is back", "window.client?.state === 'open'").await?;
    real::ask(&address, "/publish?text=8").await?;
    until(&bob, "he gets only what is new", &had(&["8"])).await?;
    until(&bob, "and missed nothing", "seen.gaps.length === 0 && seen.resumed === 1").await?;

    // A second tab of the same member, and an end.
    let tab = browser.open("ann again", &page("ann")).await?;
    until(&ann, "the older one stops", "client.state === 'stopped' && client.code === 4500").await?;
    until(&tab, "the newer one is there", "window.client?.state === 'open'").await?;
    real::ask(&address, "/publish?text=9").await?;
    until(&tab, "and stays", "seen.data.at(-1) === '9' && seen.opened === 1 && seen.closes === 0").await?;
    real::ask(&address, "/kick?member=ann").await?;
    until(&tab, "who is put out stops", "client.code === 4501 && client.reason === 'enough'").await?;
    until(&bob, "he sees her go", "seen.left.join() === 'ann' && client.count === 1").await?;
    Ok(server.kill().await?)
}

/// Starts the program; also gives its address.
async fn start(listen: &str, data: &Path) -> Outcome<(Program, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    let server = Program::start(command.arg("serve").arg(listen).arg(data), real::LISTENS).await?;
    let address = server.line.strip_prefix(real::LISTENS).ok_or_else(|| server.line.clone())?.to_owned();
    Ok((server, address))
}

/// With a room that does what real ones do not: a hole in the sequence; and a network that goes and comes back.
pub(crate) async fn of_holes_and_networks(browser: &mut Browser) -> Outcome {
    let room = scripted::Room::default();
    let server = room.serve("127.0.0.1:0").await?;
    let ann = browser.open("ann", &format!("http://{}/?member=ann", server.address)).await?;
    until(&ann, "she is in the room", "window.client?.state === 'open'").await?;
    until(&ann, "and does not say too much", "client.send('x'.repeat(1001)) === 'refused'").await?;
    room.publish("bob", &json!("1"));
    room.publish_binary("bob", &[2, 255]);
    until(&ann, "she gets both kinds", &had(&["1", "bob: 2,255"])).await?;

    room.publish_to_nobody(&json!("3"));
    room.publish("", &json!("4"));
    until(&ann, "the hole is filled", &had(&["1", "bob: 2,255", "3", "4"])).await?;
    until(&ann, "at once", "seen.pause === 0 && seen.opened === 2 && seen.gaps.length === 0").await?;

    network(browser, &ann, &room).await?;

    // What is on disk is another room's after this: nothing to continue.
    let address = server.address.clone();
    server.kill().await;
    let room = scripted::Room::of_epoch("other");
    room.publish("bob", &json!("first"));
    let server = room.serve(&address).await?;
    until(&ann, "she is told", "seen.gaps.length === 1 && seen.gaps[0][0].startsWith('k3x-')").await?;
    until(&ann, "how much is lost is not known", "seen.gaps[0][1] === null").await?;
    until(&ann, "and begins anew", "seen.data.at(-1) === 'first' && client.position.startsWith('other-')")
        .await?;
    server.kill().await;
    Ok(())
}

/// Without a network nothing is tried in vain, and with it at once: the pause would be an hour.
async fn network(browser: &Browser, page: &Client, room: &scripted::Room) -> Outcome {
    browser.offline(page, true).await?;
    until(page, "the browser says so", "navigator.onLine === false").await?;
    room.hang_up("ann");
    until(page, "it waits", "client.state === 'waiting' && seen.pause === 3600000").await?;
    room.publish("bob", &json!("5"));
    browser.offline(page, false).await?;
    until(page, "it is back", "client.state === 'open' && seen.data.at(-1) === '5'").await
}
