//! Random messages, readers and policies against what must hold of all of them.

use super::*;
use crate::{OnFull, outbound::Delivered};
use proptest::prelude::*;
use std::time::Duration;

#[derive(Debug, Clone)]
enum Op {
    Send { len: usize, key: Option<u8>, kind: Kind },
    Stall(bool),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![3 => Just(Kind::Plain), 1 => Just(Kind::Sequenced), 1 => Just(Kind::Replay)];
    prop_oneof![
        8 => (0_usize..40, proptest::option::of(0_u8..3), kind)
            .prop_map(|(len, key, kind)| Op::Send { len, key, kind }),
        2 => any::<bool>().prop_map(Op::Stall),
        2 => (0_u64..600).prop_map(Op::Pass),
    ]
}

fn bounds() -> impl Strategy<Value = Outbound> {
    let on_full = prop_oneof![
        Just(OnFull::Close),
        Just(OnFull::DropNewest),
        Just(OnFull::DropOldest),
        Just(OnFull::LatestPerKey)
    ];
    (0_usize..60, 1_usize..200, 1_usize..8, on_full).prop_map(|(window, bytes, messages, on_full)| {
        let stall = Duration::from_secs(3);
        Outbound::new().window(window).max_bytes(bytes).max_messages(messages).on_full(on_full).stall(stall)
    })
}

/// What the model remembers of a message: its text, which begins with its number.
struct Sent {
    text: String,
    kind: Kind,
    delivered: Delivered,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_arrives_is_in_order_whole_where_it_must_be_and_memory_keeps_its_bounds(
        seed in any::<u64>(), bounds in bounds(), ops in proptest::collection::vec(op(), 1..80)
    ) {
        let rig = Rig::with(bounds.clone(), |builder| builder.seed(seed));
        rig.kit.run(async {
            let client = rig.join("/one").await;
            let mut sent: Vec<Sent> = Vec::new();
            let mut replayed = 0;
            for op in ops {
                match op {
                    Op::Stall(stalled) => client.stall(stalled),
                    Op::Pass(millis) => rig.kit.advance(Duration::from_millis(millis)).await,
                    Op::Send { len, key, kind } => {
                        let text = format!("{:05}{}", sent.len(), "x".repeat(len));
                        let message = text.clone();
                        let (delivered, stats) = rig.act(move |room| {
                            let key = key.map(|key| key.to_string());
                            let socket = room.sockets().pop();
                            let delivered = socket.map_or(Delivered::Dropped, |socket| {
                                let message = &message.into();
                                room.deliver(&socket, Outgoing { message, key: key.as_deref(), kind })
                            });
                            (delivered, room.outbound_stats())
                        }).await;
                        if kind == Kind::Replay {
                            replayed += text.len();
                        }
                        let longest = bounds.max_bytes.max(text.len());
                        prop_assert!(stats.bytes <= longest.max(45) + replayed, "{stats:?}");
                        sent.push(Sent { text, kind, delivered });
                    }
                }
            }
            let all = rig.read(&client).await;
            let stats = rig.stats().await;
            prop_assert_eq!((stats.behind, stats.messages, stats.bytes), (0, 0, 0));

            let closed = all.iter().position(|text| text == "1013");
            prop_assert_eq!(closed.is_some(), stats.disconnected == 1);
            prop_assert!(closed.is_none_or(|at| at + 1 == all.len()), "something follows the Close");
            let arrived: Vec<_> = all.iter().filter(|text| *text != "1013").collect();
            // In order, each at most once, as it was sent.
            let numbers: Vec<usize> = arrived.iter().map(|text| text[..5].parse().unwrap()).collect();
            prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
            prop_assert!(arrived.iter().zip(&numbers).all(|(text, number)| **text == sent[*number].text));
            // Nothing that was said to be left out arrives, and what must not be left out is not.
            for (number, message) in sent.iter().enumerate() {
                let is_there = numbers.binary_search(&number).is_ok();
                match (message.delivered, message.kind) {
                    (Delivered::Dropped | Delivered::Disconnected, _) => prop_assert!(!is_there),
                    (_, Kind::Sequenced | Kind::Replay) => prop_assert!(is_there || closed.is_some()),
                    (_, Kind::Plain) => {}
                }
            }
            // Each left out is counted, if the socket stays.
            if closed.is_none() {
                let missing = (sent.len() - arrived.len()) as u64;
                prop_assert_eq!(missing, stats.dropped + stats.coalesced);
            }
            // What is numbered has no hole before the end.
            let kept: Vec<_> = (0..sent.len()).filter(|n| sent[*n].kind != Kind::Plain).collect();
            let there: Vec<_> = numbers.iter().copied().filter(|n| sent[*n].kind != Kind::Plain).collect();
            prop_assert_eq!(&kept[..there.len()], &there[..]);
            Ok(())
        })?;
    }
}
