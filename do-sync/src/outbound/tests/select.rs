use super::*;
use do_core::tag;

#[test]
fn tags_exceptions_and_predicates_select_and_nobody_gets_it_twice() {
    let rig = Rig::new(Outbound::new());
    rig.kit.run(async {
        let red = rig.join("/red?1").await;
        let both = rig.join("/red/blue?2").await;
        let blue = rig.join("/blue/odd?3").await;
        let none = rig.join("/plain").await;
        let reports = rig
            .act(|room| {
                let report = [
                    room.broadcast("union").to(tag!("red")).to(tag!("blue")).send(),
                    room.broadcast("one").to(tag!("blue")).send(),
                    room.broadcast("not odd").to(tag!("red")).to(tag!("blue")).except_tag(tag!("odd")).send(),
                    room.broadcast("but").except(&named(room, "odd")).except_tag(tag!("red")).send(),
                    room.broadcast("typed").filter_by(|text: &String| text.as_str() > "1").send(),
                    room.broadcast("nobody's type").filter_by(|_: &u8| true).send(),
                    room.broadcast("plain").filter(|socket| socket.attachment_bytes().is_none()).send(),
                    room.broadcast_json(&7).unwrap().filter(|_| true).filter(|_| false).send(),
                ];
                report.map(|report| (report.matched, report.queued))
            })
            .await;
        assert_eq!(reports, [(3, 3), (2, 2), (2, 2), (1, 1), (2, 2), (0, 0), (1, 1), (0, 0)]);
        rig.kit.settle().await;
        assert_eq!(got(&red), ["union", "not odd"]);
        assert_eq!(got(&both), ["union", "one", "not odd", "typed"]);
        assert_eq!(got(&blue), ["union", "one", "typed"]);
        assert_eq!(got(&none), ["but", "plain"]);
    });
}

#[test]
fn texts_bytes_and_values_are_sent_and_a_value_that_is_no_json_is_refused() {
    let rig = Rig::new(Outbound::new());
    rig.kit.run(async {
        let client = rig.join("/").await;
        let refused = rig
            .act(|room| {
                room.send_all("text");
                room.send_all(vec![1, 2]);
                room.broadcast_json(&serde_json::json!({"a": [1, null]})).unwrap().send();
                room.broadcast_json(&std::collections::HashMap::from([((1, 2), 3)])).err().map(|e| e.kind())
            })
            .await;
        assert_eq!(refused, Some(do_core::ErrorKind::Invalid));
        rig.kit.settle().await;
        assert_eq!(client.try_receive(), Some(Received::Message("text".into())));
        assert_eq!(client.try_receive(), Some(Received::Message(vec![1, 2].into())));
        assert_eq!(client.try_receive(), Some(Received::Message(r#"{"a":[1,null]}"#.into())));
    });
}
