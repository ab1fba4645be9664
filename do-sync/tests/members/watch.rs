//! What a room's log and its clients must show, whatever happened.

use super::hall::ask;
use do_core::{Message, kit::Client, testing::Received, tokio::HostStub};
use serde_json::Value;
use std::collections::BTreeMap;

/// Somebody who is there, and what others see of them.
pub(crate) type There = BTreeMap<String, Option<String>>;

/// An entry in short: `+ann`, `+ann=x`, `~ann=x`, `-ann`.
pub(crate) fn short(frame: &Value) -> Option<String> {
    let sign = match frame["t"].as_str()? {
        "joined" => '+',
        "updated" => '~',
        "left" => '-',
        _ => return None,
    };
    let data = frame["data"].as_str().map_or(String::new(), |data| format!("={data}"));
    Some(format!("{sign}{}{data}", frame["member"].as_str()?))
}

pub(crate) async fn frames(stub: &HostStub, query: &str) -> Vec<Value> {
    let frames: Vec<String> = ask(stub, &format!("/log{query}")).await.unwrap();
    frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
}

/// The log in short.
pub(crate) async fn log(stub: &HostStub) -> Vec<String> {
    frames(stub, "").await.iter().filter_map(short).collect()
}

/// Reads who is there from the log: for each member `joined` and `left` alternate, beginning with `joined`, and in between
/// others may see something else. Numbers have no holes.
pub(crate) fn replay(frames: &[Value]) -> Result<There, String> {
    let mut there = There::new();
    for (frame, number) in frames.iter().zip(1_u64..) {
        if frame["s"].as_u64() != Some(number) {
            return Err(format!("number {number} is {frame}"));
        }
        let Some(member) = frame["member"].as_str().map(str::to_owned) else { continue };
        let data = frame["data"].as_str().map(str::to_owned);
        let known = there.contains_key(&member);
        match (frame["t"].as_str(), known) {
            (Some("joined"), false) | (Some("updated"), true) => {
                there.insert(member, data);
            }
            (Some("left"), true) => {
                there.remove(&member);
            }
            _ => return Err(format!("{frame}, though there: {known}")),
        }
    }
    Ok(there)
}

/// What a client has received: frames, and the code of the Close. `None` as long as it is open, 1006 for a loss.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) frames: Vec<Value>,
    pub(crate) end: Option<u16>,
}

impl Heard {
    /// Reads what has arrived.
    pub(crate) fn listen(&mut self, client: &Client) {
        while self.end.is_none() {
            match client.try_receive() {
                Some(Received::Message(Message::Text(text))) => {
                    self.frames.push(serde_json::from_str(&text).unwrap());
                }
                Some(Received::Close(code)) => self.end = Some(code.map_or(1_005, |(code, _)| code)),
                Some(Received::Lost) => self.end = Some(1_006),
                Some(_) => {}
                None => break,
            }
        }
    }

    pub(crate) fn short(&self) -> Vec<String> {
        self.frames.iter().filter_map(short).collect()
    }

    /// The hello comes first, and what follows it are the entries after it, without a hole.
    pub(crate) fn check(&self, log: &[Value]) -> Result<(), String> {
        let Some((hello, rest)) = self.frames.split_first() else { return Ok(()) };
        let at = hello["at"].as_str().and_then(|at| at.split_once('-')?.1.parse::<usize>().ok());
        let at = at.ok_or_else(|| format!("no hello: {hello}"))?;
        for (frame, index) in rest.iter().zip(at..) {
            if log.get(index) != Some(frame) {
                return Err(format!("after {at} came {frame}, the log has {:?}", log.get(index)));
            }
        }
        Ok(())
    }
}

/// What has arrived at a client.
pub(crate) fn heard(client: &Client) -> Heard {
    let mut heard = Heard::default();
    heard.listen(client);
    heard
}
