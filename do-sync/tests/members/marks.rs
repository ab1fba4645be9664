//! What sockets carry, and whose they are.

use super::{
    hall::{Rules, ask, enter, hall, kit, there},
    watch::{frames, heard, log, short},
};
use serde_json::{Value, json};

type Carried = Vec<(String, Option<String>, Option<String>)>;

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn data_and_attachments_survive_hibernation_and_data_a_return() {
    let kit = kit(Rules { grace: 5, ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let ann = enter(&kit, &hall, "m=ann&d=x&app=private").await;
        let bob = enter(&kit, &hall, "m=bob").await;
        let carried = || async { ask::<Carried>(&hall, "/sockets").await.unwrap() };
        assert_eq!(carried().await, [("ann".into(), some("x"), some("private")), ("bob".into(), None, None)]);
        ann.send("data:y").unwrap();
        bob.send("app:7").unwrap();
        kit.hibernate(&hall).await.unwrap();
        assert_eq!(
            carried().await,
            [("ann".into(), some("y"), some("private")), ("bob".into(), None, some("7"))]
        );
        assert_eq!(there(&hall).await, ["ann=y", "bob"]);
        ann.send("data:y").unwrap(); // the same again is no news
        kit.settle().await;
        drop(ann);
        kit.evict(&hall);
        kit.settle().await;
        let ann = enter(&kit, &hall, "m=ann").await;
        assert_eq!(there(&hall).await, ["ann=y", "bob"]);
        assert_eq!(carried().await, [("ann".into(), some("y"), None)]);
        assert_eq!(log(&hall).await, ["+ann=x", "+bob", "~ann=y"]);
        drop(ann);
    });
}

#[test]
fn foreign_sockets_are_left_alone_and_get_nothing_of_the_sequence() {
    let kit = kit(Rules::default(), 0);
    kit.run(async {
        let hall = hall(&kit);
        let foreign = kit.connect(&hall, "/join").await.unwrap();
        let other = enter(&kit, &hall, "m=ann&room=2&app=z").await;
        let ann = enter(&kit, &hall, "m=ann&d=x").await;
        let seen: Vec<Value> = ask(&hall, "/foreign").await.unwrap();
        assert_eq!(seen.len(), 2);
        assert!(seen.contains(&json!(["foreign"])));
        assert!(seen.iter().any(|seen| seen["do-sync"]["room"] == "other" && seen["app"] == "z"), "{seen:?}");
        kit.settle().await;
        assert!(heard(&foreign).frames.is_empty());
        drop(foreign);
        kit.settle().await;
        assert_eq!(log(&hall).await, ["+ann=x"]);
        drop((other, ann));
    });
}

#[test]
fn rooms_of_one_object_have_members_of_their_own() {
    let kit = kit(Rules::default(), 0);
    kit.run(async {
        let hall = hall(&kit);
        let here = enter(&kit, &hall, "m=ann&d=x").await;
        // With the tag of the first room it is in both, but a member of the one that it entered.
        let there_too = enter(&kit, &hall, "m=ann&d=y&room=2&tag=room").await;
        assert_eq!(there(&hall).await, ["ann=x"]);
        let others: Value = ask(&hall, "/presence?room=2").await.unwrap();
        assert_eq!(others, json!([["ann", "y"]]));
        drop(here);
        kit.settle().await;
        assert_eq!(log(&hall).await, ["+ann=x", "-ann"]);
        assert!(there(&hall).await.is_empty());
        assert_eq!(heard(&there_too).short(), Vec::<String>::new());
        drop(there_too);
        kit.settle().await;
        let others: Vec<_> = frames(&hall, "?room=2").await.iter().filter_map(short).collect();
        assert_eq!(others, ["+ann=y", "-ann"]);
    });
}

#[test]
fn d26_what_is_too_long_together_is_said_and_changes_nothing() {
    let kit = kit(Rules::default(), 0);
    kit.run(async {
        let hall = hall(&kit);
        let (data, app) = ("x".repeat(8_000), "y".repeat(8_400));
        let error = kit.connect(&hall, &format!("/enter?m=ann&d={data}&app={app}")).await.unwrap_err();
        let said = "a member's data (8002 bytes) and what is attached to the socket (8402 bytes) are ";
        assert!(error.to_string().contains(said), "{error}");
        assert!(there(&hall).await.is_empty());
        let ann = enter(&kit, &hall, &format!("m=ann&d={data}")).await;
        assert_eq!(there(&hall).await, [format!("ann={data}")]);
        assert_eq!(log(&hall).await.len(), 1);
        drop(ann);
    });
}
