use crate::{Chat, route};
use do_core::{
    kit::{Client, Kit},
    prelude::*,
};
use serde_json::{Value, json};

#[test]
fn the_object_has_at_most_40_lines_of_code() {
    let object = include_str!("../chat.rs").split("#[cfg(test)]").next().unwrap();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    assert_eq!(object.lines().filter(is_code).count(), 40);
}

async fn enter(kit: &Kit, name: &str, after: &str) -> Client {
    let room = kit.namespace("CHAT").unwrap().named("lobby").unwrap();
    kit.connect(&room, &format!("/ws?room=lobby&name={name}{after}")).await.unwrap()
}

/// The next frame, without its time.
async fn next(client: &Client) -> Value {
    let mut frame: Value = serde_json::from_str(&client.text().await.unwrap()).unwrap();
    if frame["t"] != "hello" {
        frame.as_object_mut().unwrap().remove("at");
    }
    frame
}

#[test]
fn people_see_who_is_there_and_what_was_said_while_they_were_away() {
    let kit = Kit::builder().object::<Chat<_>>("CHAT").start().unwrap();
    kit.run(async {
        let ann = enter(&kit, "ann", "").await;
        let hello = next(&ann).await;
        assert_eq!((&hello["members"], &hello["replay"]), (&json!([{ "id": "ann" }]), &json!(1)));
        assert_eq!(next(&ann).await, json!({ "t": "joined", "s": 1, "member": "ann" }));
        let epoch = hello["at"].as_str().unwrap().split_once('-').unwrap().0.to_owned();

        let bob = enter(&kit, "bob", "").await;
        assert_eq!(next(&bob).await["count"], 2);
        assert_eq!(next(&ann).await, json!({ "t": "joined", "s": 2, "member": "bob" }));
        ann.send(json!({ "text": "hello" }).to_string()).unwrap();
        let said = json!({ "t": "msg", "s": 3, "from": "ann", "d": { "text": "hello" } });
        assert_eq!(next(&ann).await, said);

        // Bob's connection drops, and he is back within the grace: nobody hears of it.
        drop(bob);
        kit.settle().await;
        ann.send(json!({ "text": "bob?" }).to_string()).unwrap();
        assert_eq!(next(&ann).await["s"], 4);
        let bob = enter(&kit, "bob", &format!("&after={epoch}-2")).await;
        let hello = next(&bob).await;
        assert_eq!(
            (&hello["at"], &hello["replay"], &hello["gap"]),
            (&json!(format!("{epoch}-2")), &json!(2), &Value::Null)
        );
        assert_eq!(next(&bob).await, said);
        assert_eq!(next(&bob).await["d"]["text"], "bob?");

        // Longer than the grace, he has left.
        drop(bob);
        kit.advance(Duration::from_secs(6)).await;
        assert_eq!(next(&ann).await, json!({ "t": "left", "s": 5, "member": "bob" }));
    });
}

#[test]
fn what_is_no_line_is_ignored_and_what_is_no_request_is_refused() {
    let kit = Kit::builder().object::<Chat<_>>("CHAT").start().unwrap();
    kit.run(async {
        let ann = enter(&kit, "ann", "").await;
        for _ in 0..2 {
            next(&ann).await;
        }
        for wrong in ["", "hello", "{}", r#"{"text":7}"#, "[]"] {
            ann.send(wrong).unwrap();
        }
        ann.send(Message::binary(vec![1, 2])).unwrap();
        ann.send(json!({ "text": "" }).to_string()).unwrap();
        assert_eq!(next(&ann).await, json!({ "t": "msg", "s": 2, "from": "ann", "d": { "text": "" } }));

        let ask = async |path: &str| {
            let request = http::Request::get(format!("http://chat{path}")).body(Body::empty()).unwrap();
            let response = kit.serve(route, request).await;
            (response.status().as_u16(), response.into_body().text(1 << 20).await.unwrap())
        };
        for (path, status) in [
            ("/ws", 400),
            ("/ws?room=lobby", 400),
            ("/ws?room=lobby&name=ann", 426),
            ("/ws?room=&name=", 400),
        ] {
            assert_eq!(ask(path).await.0, status, "{path}");
        }
        assert!(ask("/").await.1.starts_with("<!doctype html>"));
        assert!(ask("/client.js").await.1.contains("RoomClient"));
        let history: Value = serde_json::from_str(&ask("/history?room=lobby").await.1).unwrap();
        assert_eq!(history["entries"].as_array().unwrap().len(), 2, "{history}");
    });
}
