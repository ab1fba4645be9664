//! Names that look like other names: tags, ids and attachments of somebody's choice.

use crate::probe::{Do, Lab, Setup, heard, hello, ids};
use serde_json::{Value, json};

/// What stands between the parts of a room's own tags, in a query.
const SEPARATOR: &str = "%1F";

#[test]
fn d1_nobody_gets_into_a_room_by_a_tag_of_their_own_choice() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let ann = lab.connect("member=ann").await;
        hello(&ann).await;
        for query in ["", "follow=1&", "member=eve&", "room=1&", "room=1&member=eve&"] {
            for tag in [
                format!("room{SEPARATOR}"),
                format!("room{SEPARATOR}{SEPARATOR}"),
                format!("room{SEPARATOR}ann"),
            ] {
                let (status, text) = lab.refused(&format!("{query}tag={tag}")).await;
                assert_ne!(status, 101, "{query} {tag} {text}");
            }
        }
        assert_eq!(lab.ask(Do::SocketsOf("ann".into())).await, json!(1));
        assert_eq!(lab.ask(Do::Publish(json!("secret"))).await[1], json!(1));
        assert_eq!(lab.there().await, ["ann"]);
    });
}

#[test]
fn d1_a_room_whose_name_is_another_ones_tag_lets_nobody_in() {
    for name in ["room\u{1f}", "room\u{1f}ann", "room\u{1f}\u{1f}", "\u{1f}", "\u{1f}\u{1f}"] {
        let lab = Lab::new(&Setup { tags: [Some("room".into()), Some(name.into())], ..Setup::default() });
        lab.run(async {
            let ann = lab.connect("member=ann").await;
            hello(&ann).await;
            for query in ["room=1", "room=1&member=ann", "room=1&follow=1"] {
                let (status, text) = lab.refused(query).await;
                assert_eq!(status, 0, "{text}");
            }
            assert_eq!(lab.ask(Do::Publish(json!("secret"))).await[1], json!(1));
            lab.kit.settle().await;
            assert_eq!(heard(&ann), ["\"secret\""]);
        });
    }
}

#[test]
fn rooms_whose_names_begin_alike_have_nothing_in_common() {
    let names =
        [Some(""), Some("room"), Some("roo"), Some("room/ann"), Some("é\"'%_\\"), Some("room "), None];
    for (index, first) in names.iter().enumerate() {
        for second in &names[index + 1..] {
            let tags = [first.map(str::to_owned), second.map(str::to_owned)];
            let lab = Lab::new(&Setup { tags: tags.clone(), ..Setup::default() });
            lab.run(async {
                let ann = lab.connect("member=ann").await;
                let fay = lab.connect("follow=1").await;
                let bob = lab.connect("room=1&member=bob").await;
                let other = lab.connect("room=1&follow=1").await;
                for client in [&ann, &fay, &bob, &other] {
                    hello(client).await;
                }
                lab.kit.settle().await;
                for client in [&ann, &fay, &bob, &other] {
                    assert_eq!(heard(client), [""; 0], "{tags:?}");
                }
                assert_eq!(lab.ask(Do::Publish(json!(1))).await[1], json!(2));
                assert_eq!(lab.ask_other(Do::Publish(json!(2))).await[1], json!(2));
                lab.kit.settle().await;
                assert_eq!([heard(&ann), heard(&fay)], [["1"], ["1"]], "{tags:?}");
                assert_eq!([heard(&bob), heard(&other)], [["2"], ["2"]], "{tags:?}");
                assert_eq!(lab.there().await, ["ann"]);
                assert_eq!(ids(&lab.ask_other(Do::Presence).await), ["bob"]);
                lab.kit.hibernate(&lab.stub).await.unwrap();
                drop((ann, bob));
                lab.kit.settle().await;
                assert_eq!(lab.there().await, [""; 0]);
                assert_eq!([heard(&fay), heard(&other)], [["-ann"], ["-bob"]], "{tags:?}");
            });
        }
    }
}

#[test]
fn an_attachment_of_somebodys_choice_makes_nobody_a_member() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let mark = r#"{"do-sync":{"room":"room","m":"ann","c":"x","t":0},"app":1}"#;
        let mark: String = mark.bytes().map(|b| format!("%{b:02X}")).collect();
        let eve = lab.connect(&format!("attach={mark}")).await;
        assert_eq!(lab.ask(Do::MemberOfAll).await, json!([null]));
        eve.send("\"as ann\"").unwrap();
        lab.kit.settle().await;
        assert_eq!(lab.ask(Do::Position).await.as_str().unwrap().split_once('-').unwrap().1, "0");
    });
}

#[test]
fn d1_long_names_and_many_tags_are_refused_whole() {
    let long = "é".repeat(64);
    let setup = Setup { tags: [Some("r".repeat(127)), Some("r".repeat(128))], ..Setup::default() };
    let lab = Lab::new(&setup);
    lab.run(async {
        let escaped: String = long.bytes().map(|b| format!("%{b:02X}")).collect();
        let ann = lab.connect(&format!("member={escaped}")).await;
        assert_eq!(hello(&ann).await["member"], json!(long));
        let (_, text) = lab.refused(&format!("room=1&member={escaped}")).await;
        assert!(text.contains("256"), "{text}");
        assert_eq!(lab.ask_other(Do::Presence).await, json!([]));
        // The room and what it needs take three of the ten.
        let bob = lab.connect("member=bob&tags=7").await;
        assert_eq!(hello(&bob).await["count"], json!(2));
        let fay = lab.connect("follow=1&tags=7").await;
        assert_eq!(hello(&fay).await["count"], json!(2));
        for query in ["member=eve&tags=8", "follow=1&tags=8"] {
            let (status, text) = lab.refused(query).await;
            assert!(status == 0 && text.contains("10"), "{text}");
        }
        assert_eq!(lab.there().await, ["bob", long.as_str()]);
    });
}

#[test]
fn who_takes_a_socket_out_of_the_room_loses_it_and_no_more() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let bob = lab.connect("member=bob").await;
        let ann = lab.connect("member=ann").await;
        lab.ask(Do::Unmark).await;
        drop(ann);
        lab.kit.settle().await;
        assert_eq!(lab.ask(Do::MemberOfAll).await, json!([null]));
        lab.ask(Do::Publish(json!(1))).await;
        lab.kit.hibernate(&lab.stub).await.unwrap();
        let _cat = lab.connect("member=cat").await;
        lab.kit.settle().await;
        let news = heard(&bob);
        assert_eq!(news.first().map(String::as_str), Some("hello"));
        assert!(news.contains(&"-ann".to_owned()), "{news:?}");
        assert_eq!(lab.log().await.iter().filter(|entry| *entry == "-ann").count(), 1);
    });
}

#[test]
fn pings_are_told_though_the_room_was_made_further() {
    let lab = Lab::new(&Setup { ping_first: true, ..Setup::default() });
    lab.run(async {
        let ann = lab.connect("member=ann").await;
        assert_eq!(hello(&ann).await["ping"], json!(["ping", "pong"]));
    });
}

#[test]
fn two_rooms_on_one_tag_have_one_log_and_one_set_of_members() {
    for replayed in [false, true] {
        let tags = [Some("room".into()), Some("room".into())];
        let lab = Lab::new(&Setup { tags, replay: if replayed { 100 } else { 0 }, ..Setup::default() });
        lab.run(async {
            let ann = lab.connect("member=ann").await;
            let bob = lab.connect("room=1&member=bob").await;
            lab.ask(Do::Publish(json!(1))).await;
            lab.ask_other(Do::Publish(json!(2))).await;
            lab.kit.settle().await;
            let numbered =
                |news: Vec<String>| news.into_iter().filter(|entry| entry != "hello").collect::<Vec<_>>();
            assert!(numbered(heard(&ann)).ends_with(&["+bob".into(), "1".into(), "2".into()]));
            assert!(numbered(heard(&bob)).ends_with(&["1".into(), "2".into()]));
            // Each by the room that did not let them in.
            lab.ask(Do::Kick("bob".into())).await;
            lab.ask_other(Do::Kick("ann".into())).await;
            lab.kit.settle().await;
            assert_eq!(lab.log().await, ["+ann", "+bob", "1", "2", "-bob", "-ann"]);
            assert_eq!(lab.there().await, [""; 0]);
            assert_eq!(lab.ask_other(Do::Presence).await, json!([]));
            let again = lab.connect("member=bob").await;
            assert_eq!(lab.there().await, ["bob"]);
            assert_eq!(ids(&lab.ask_other(Do::Presence).await), ["bob"]);
            drop::<(_, Value)>((again, Value::Null));
        });
    }
}
