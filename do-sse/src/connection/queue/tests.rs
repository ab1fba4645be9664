use super::*;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_millis(1_000);
const STALL: Duration = Duration::from_secs(30);

fn limits(on_full: OnFull) -> Limits {
    Limits { max_bytes: 10, max_events: 3, stall: STALL, on_full }
}

fn entry(kind: Kind, text: &str) -> Entry {
    Entry { bytes: text.to_owned().into(), kind, key: None, ticket: 0 }
}

fn keyed(key: &str, text: &str) -> Entry {
    Entry { key: Some(key.into()), ..entry(Kind::Plain, text) }
}

fn pushed(queue: &mut Queue, entry: Entry, on_full: OnFull) -> Delivered {
    queue.push(entry, NOW, &limits(on_full)).delivered
}

/// All that is there, as text; `None` at the end.
fn read(queue: &mut Queue) -> Option<String> {
    let chunk = queue.read(0)?;
    chunk.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn what_waits_is_joined_into_one_chunk_in_its_order() {
    let mut queue = Queue::new(NOW);
    for (kind, text) in [(Kind::Preface, "a"), (Kind::Plain, "b"), (Kind::Numbered, "c")] {
        assert_eq!(pushed(&mut queue, entry(kind, text), OnFull::Close), Delivered::Queued);
    }
    assert_eq!(
        pushed(&mut queue, entry(Kind::Beat, ":"), OnFull::Close),
        Delivered::Dropped,
        "data does as well"
    );
    assert_eq!(read(&mut queue).as_deref(), Some("abc"));
    assert_eq!(queue.read(0), None);
    assert_eq!(pushed(&mut queue, entry(Kind::Beat, ":"), OnFull::Close), Delivered::Queued);
    let long = "x".repeat(CHUNK);
    let mut large = limits(OnFull::Close);
    large.max_bytes = 2 * CHUNK;
    queue.push(entry(Kind::Plain, &long), NOW, &large);
    assert_eq!(read(&mut queue).as_deref(), Some(":"), "what is long is not copied to be joined");
    assert_eq!(read(&mut queue).map(|text| text.len()), Some(CHUNK));
}

#[test]
fn one_alone_is_taken_whatever_its_length_and_the_bounds_hold_for_all_others() {
    let mut queue = Queue::new(NOW);
    let long = "x".repeat(100);
    assert_eq!(pushed(&mut queue, entry(Kind::Plain, &long), OnFull::DropNewest), Delivered::Queued);
    assert_eq!(pushed(&mut queue, entry(Kind::Plain, "y"), OnFull::DropNewest), Delivered::Dropped);
    assert_eq!(read(&mut queue), Some(long));
    for n in 0..5 {
        let expected = if n < 3 { Delivered::Queued } else { Delivered::Dropped };
        assert_eq!(pushed(&mut queue, entry(Kind::Plain, "z"), OnFull::DropNewest), expected);
    }
}

#[test]
fn the_oldest_make_room_or_none_of_them() {
    let mut queue = Queue::new(NOW);
    let on_full = OnFull::DropOldest;
    for text in ["aaaa", "bbbb"] {
        pushed(&mut queue, entry(Kind::Plain, text), on_full);
    }
    let sixth = queue.push(entry(Kind::Plain, "cccccc"), NOW, &limits(on_full));
    assert_eq!((sixth.delivered, sixth.displaced), (Delivered::Queued, 1));
    assert_eq!(read(&mut queue).as_deref(), Some("bbbbcccccc"));
    pushed(&mut queue, entry(Kind::Numbered, "nnnnnn"), on_full);
    pushed(&mut queue, entry(Kind::Plain, "p"), on_full);
    assert_eq!(pushed(&mut queue, entry(Kind::Plain, "qqqqqq"), on_full), Delivered::Dropped);
    assert_eq!(read(&mut queue).as_deref(), Some("nnnnnnp"), "those with a number are not left out");
}

#[test]
fn of_a_key_the_latest_waits_behind_what_was_sent_before_it() {
    let mut queue = Queue::new(NOW);
    let on_full = OnFull::LatestPerKey;
    assert_eq!(pushed(&mut queue, keyed("k", "1"), on_full), Delivered::Queued);
    assert_eq!(pushed(&mut queue, keyed("other", "a"), on_full), Delivered::Queued);
    assert_eq!(pushed(&mut queue, keyed("k", "2"), on_full), Delivered::Coalesced);
    assert_eq!(read(&mut queue).as_deref(), Some("a2"));
    for key in ["a", "b", "c"] {
        pushed(&mut queue, keyed(key, key), on_full);
    }
    let full = queue.push(keyed("d", "d"), NOW, &limits(on_full));
    assert_eq!((full.delivered, full.ended), (Delivered::Disconnected, Some(Cause::Full)));
    assert_eq!(queue.read(0), Some(None));
}

#[test]
fn what_is_numbered_is_there_or_the_stream_ends() {
    for on_full in [OnFull::Close, OnFull::DropNewest, OnFull::DropOldest, OnFull::LatestPerKey] {
        let mut queue = Queue::new(NOW);
        pushed(&mut queue, entry(Kind::Plain, "12345678"), on_full);
        let full = queue.push(entry(Kind::Numbered, "123"), NOW, &limits(on_full));
        assert_eq!((full.delivered, full.ended), (Delivered::Disconnected, Some(Cause::Full)), "{on_full:?}");
        assert_eq!(queue.bytes(), 0, "nothing is sent after the decision");
        assert_eq!(queue.read(0), Some(None));
        assert_eq!(pushed(&mut queue, entry(Kind::Preface, "late"), on_full), Delivered::Dropped);
    }
}

#[test]
fn a_stall_counts_from_the_last_progress() {
    let mut queue = Queue::new(NOW);
    let limits = Limits { max_events: 100, max_bytes: 1_000_000, ..limits(OnFull::DropNewest) };
    assert_eq!(queue.stalls_at(STALL), None);
    let long = "x".repeat(CHUNK);
    let at = |queue: &mut Queue, s: u64| {
        queue.push(entry(Kind::Plain, &long), NOW + Duration::from_secs(s), &limits).delivered
    };
    assert_eq!(at(&mut queue, 100), Delivered::Queued, "an empty queue does not stand still");
    assert_eq!(at(&mut queue, 120), Delivered::Queued);
    assert!(queue.read(0).is_some());
    assert_eq!(at(&mut queue, 140), Delivered::Queued);
    assert_eq!(queue.stalls_at(STALL), Some(NOW + Duration::from_secs(170)));
    assert_eq!(at(&mut queue, 169), Delivered::Queued);
    let ended = queue.push(entry(Kind::Plain, "y"), NOW + Duration::from_secs(170), &limits);
    assert_eq!(ended.ended, Some(Cause::Stalled));
}

#[test]
fn c4_nothing_is_read_before_it_may_leave() {
    let mut queue = Queue::new(NOW);
    for (ticket, text) in [(0, "a"), (1, "b"), (1, "c"), (2, "d")] {
        let entry = Entry { ticket, ..entry(Kind::Preface, text) };
        queue.push(entry, NOW, &limits(OnFull::Close));
    }
    let text = |queue: &mut Queue, durable| queue.read(durable).flatten().map(|bytes| bytes.to_vec());
    assert_eq!(text(&mut queue, 0), Some(b"a".to_vec()));
    assert_eq!(text(&mut queue, 0), None);
    queue.drain(2);
    assert_eq!(queue.read(0), None, "it ends behind what waits");
    assert_eq!(text(&mut queue, 1), Some(b"bc".to_vec()));
    queue.forget_from(2);
    assert_eq!(queue.read(1), Some(None), "its object is gone");
}

#[derive(Debug, Clone)]
enum Op {
    Push(Kind, usize, Option<u8>),
    Read,
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        Just(Kind::Plain),
        Just(Kind::Plain),
        Just(Kind::Numbered),
        Just(Kind::Beat),
        Just(Kind::Preface)
    ];
    prop_oneof![
        4 => (kind, 0..9_usize, proptest::option::of(0..3_u8)).prop_map(|(kind, length, key)| Op::Push(kind, length, key)),
        1 => Just(Op::Read),
    ]
}

fn policy() -> impl Strategy<Value = OnFull> {
    prop_oneof![
        Just(OnFull::Close),
        Just(OnFull::DropNewest),
        Just(OnFull::DropOldest),
        Just(OnFull::LatestPerKey)
    ]
}

proptest! {
    #[test]
    fn bounds_hold_order_is_kept_and_nothing_numbered_is_lost(ops in proptest::collection::vec(op(), 0..60), on_full in policy()) {
        let limits = limits(on_full);
        let mut queue = Queue::new(NOW);
        // Numbers of what was taken, and of those that are not to be lost; what was read.
        let (mut numbered, mut out, mut is_over, mut displaced, mut taken) = (Vec::new(), Vec::new(), false, 0, 0_u64);
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Op::Push(kind, length, key) => {
                    // Each is known by its text, which ends with a blank.
                    let text = format!("{number}{}", "x".repeat(length)) + " ";
                    let key = key.map(|key| Arc::from(key.to_string()));
                    let before = queue.events;
                    let pushed = queue.push(Entry { bytes: text.into(), kind, key, ticket: 0 }, NOW, &limits);
                    displaced += pushed.displaced + u64::from(pushed.delivered == Delivered::Coalesced);
                    let is_in = matches!(pushed.delivered, Delivered::Queued | Delivered::Coalesced);
                    taken += u64::from(is_in);
                    prop_assert!(!is_over || pushed.delivered == Delivered::Dropped);
                    prop_assert_eq!(pushed.ended.is_some(), pushed.delivered == Delivered::Disconnected);
                    if is_in && matches!(kind, Kind::Numbered | Kind::Preface) {
                        numbered.push(number);
                    }
                    if pushed.delivered == Delivered::Disconnected {
                        is_over = true;
                        prop_assert!(before > 0);
                    }
                }
                Op::Read => match queue.read(0) {
                    Some(Some(bytes)) => out.push(bytes),
                    Some(None) => prop_assert!(is_over),
                    None => prop_assert!(!is_over),
                },
            }
            let bounded: Vec<_> = queue.entries.iter().filter(|entry| Queue::counts(entry)).collect();
            prop_assert_eq!(queue.events, bounded.len());
            prop_assert_eq!(queue.bytes, bounded.iter().map(|entry| entry.bytes.len()).sum::<usize>());
            prop_assert!(queue.events <= 1 || (queue.events <= limits.max_events && queue.bytes <= limits.max_bytes));
        }
        while let Some(Some(bytes)) = queue.read(0) {
            out.push(bytes);
        }
        let all = String::from_utf8(out.concat()).unwrap();
        let read: Vec<usize> = all.split_terminator(' ').map(|text| text.trim_end_matches('x').parse().unwrap()).collect();
        prop_assert!(read.is_sorted(), "{:?}", read);
        if !is_over {
            prop_assert_eq!(read.len() as u64 + displaced, taken, "nothing is lost but what is told of");
            prop_assert!(numbered.iter().all(|number| read.contains(number)));
        }
    }
}

#[test]
fn the_room_of_a_long_history_is_given_back_when_it_was_read() {
    let mut queue = Queue::new(NOW);
    queue.begin(vec![Bytes::from("x".repeat(100)); 1_000], 0);
    assert_eq!(queue.bytes(), 0, "it does not count");
    assert_eq!(pushed(&mut queue, entry(Kind::Plain, "live"), OnFull::Close), Delivered::Queued);
    let mut all = String::new();
    while let Some(chunk) = read(&mut queue) {
        assert!(chunk.len() <= CHUNK);
        all.push_str(&chunk);
    }
    assert_eq!((all.len(), all.ends_with("xlive")), (100_004, true));
    assert!(queue.entries.capacity() <= KEPT);
}
