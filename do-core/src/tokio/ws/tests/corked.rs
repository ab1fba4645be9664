//! What connections have of the cork. Time is a counter here.

use super::*;
use crate::{Timestamp, engine::Clock};
use std::sync::atomic::{AtomicU32, Ordering};

/// Each look at it takes `step` milliseconds.
#[derive(Debug, Default)]
struct Steps {
    now: AtomicU32,
    step: AtomicU32,
}

impl Clock for Steps {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH
    }

    fn elapsed(&self) -> Duration {
        let step = self.step.load(Ordering::Relaxed);
        Duration::from_millis(self.now.fetch_add(step, Ordering::Relaxed).into())
    }

    fn real_wait(&self, _: Duration) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

/// Sockets of a room to which expensive flushes have just written "first" and "next", and one that is not of the room.
struct Room {
    shard: Shard,
    clock: Arc<Steps>,
    members: Vec<(ConnId, TcpStream)>,
    other: (ConnId, TcpStream),
}

/// As few as the cork takes for many.
const MEMBERS: usize = 20;

impl Room {
    async fn corked(limits: ConnLimits) -> Self {
        let clock = Arc::new(Steps::default());
        let cork = Cork::new(Duration::from_millis(50), Arc::clone(&clock) as _);
        let mut shard = Shard::corked(limits, cork).await;
        let mut members = Vec::new();
        for place in 0..=MEMBERS {
            let stream = shard.open().await;
            members.push((shard.ids[place], stream));
        }
        let other = members.pop().unwrap();
        let mut room = Self { shard, clock, members, other };
        for text in ["first", "next"] {
            room.send(text);
            room.clock.step.store(2, Ordering::Relaxed);
            room.flush().await;
            room.clock.step.store(0, Ordering::Relaxed);
        }
        room.receive_all("first").await;
        room.receive_all("next").await;
        assert_eq!(room.shard.conns.next_flush(), None, "nothing waits");
        room
    }

    /// tokio lets a task do only so much at a time, which counts anew after a pause. A shard is no task.
    async fn flush(&self) {
        tokio::task::yield_now().await;
        self.shard.conns.flush();
    }

    async fn flush_all(&self) {
        tokio::task::yield_now().await;
        self.shard.conns.flush_all();
    }

    fn send(&self, text: &str) {
        let message = Message::text(text);
        for (id, _) in &self.members {
            self.shard.conns.send(*id, &message);
        }
    }

    fn waiting(&self) -> usize {
        self.members.iter().filter(|(id, _)| self.shard.conns.buffered(*id) > 0).count()
    }

    async fn receive_all(&mut self, text: &str) {
        for (_, stream) in &mut self.members {
            let frame = self.shard.during(receive(stream)).await.unwrap();
            assert_eq!(frame, (0x81, text.into()));
        }
    }

    /// Everything that `member` gets until its end; then it is gone.
    async fn rest_of(&mut self, member: usize) -> Vec<(u8, Vec<u8>)> {
        let mut stream = self.members.swap_remove(member).1;
        self.shard.during(receive_all(&mut stream)).await
    }
}

#[tokio::test]
async fn messages_after_an_expensive_flush_wait_for_each_other_and_keep_their_order() {
    let mut room = Room::corked(ConnLimits::default()).await;
    room.send("second");
    room.shard.conns.send(room.other.0, &Message::text("not of the room"));
    room.flush().await;
    room.send("third");
    room.flush().await;
    assert_eq!((room.waiting(), room.shard.conns.buffered(room.other.0)), (MEMBERS, 0));
    let (until, now) = (room.shard.conns.next_flush().unwrap(), room.clock.elapsed());
    assert!(until > now && until <= now + Duration::from_millis(50), "{now:?} {until:?}");

    room.clock.now.fetch_add(50, Ordering::Relaxed);
    room.flush().await;
    assert_eq!((room.waiting(), room.shard.conns.next_flush()), (0, None));
    room.receive_all("second").await;
    room.receive_all("third").await;
    let got = room.shard.during(receive(&mut room.other.1)).await.unwrap();
    assert_eq!(got, (0x81, b"not of the room".to_vec()));
}

#[tokio::test]
async fn after_a_pause_nothing_waits() {
    let mut room = Room::corked(ConnLimits::default()).await;
    room.clock.now.fetch_add(50, Ordering::Relaxed);
    room.send("second");
    room.flush().await;
    assert_eq!(room.waiting(), 0);
    room.receive_all("second").await;
}

#[tokio::test]
async fn d21_a_close_takes_what_waits_along_at_once() {
    let mut room = Room::corked(ConnLimits::default()).await;
    room.send("second");
    room.flush().await;
    let id = room.members[3].0;
    room.shard.conns.close(id, &CloseCode::NORMAL.into());
    room.shard.conns.finish(id);
    room.flush().await;
    assert_eq!((room.waiting(), room.shard.conns.buffered(id)), (MEMBERS - 1, 0));
    assert_eq!(room.rest_of(3).await, [(0x81, b"second".to_vec()), close_payload(1_000, "")]);
}

#[tokio::test]
async fn d13_pings_are_answered_at_once() {
    let mut room = Room::corked(ConnLimits::default()).await;
    room.send("second");
    room.flush().await;
    let (_, stream) = &mut room.members[0];
    stream.write_all(&frame(0x89, b"p")).await.unwrap();
    let mut got = [room.shard.during(receive(stream)).await, room.shard.during(receive(stream)).await];
    got.sort();
    assert_eq!(got, [Some((0x81, b"second".to_vec())), Some((0x8A, b"p".to_vec()))]);
}

#[tokio::test]
async fn as_much_as_one_write_takes_waits_not() {
    let mut room = Room::corked(ConnLimits::default()).await;
    let (long, many) = (room.members[0].0, room.members[1].0);
    room.shard.conns.send(long, &Message::binary(vec![7; 16 * 1_024]));
    for _ in 0..63 {
        room.shard.conns.send(many, &Message::text("x"));
    }
    room.flush().await;
    assert_eq!((room.shard.conns.buffered(long), room.shard.conns.buffered(many)), (0, 63 * 3));
    room.shard.conns.send(many, &Message::text("x"));
    room.flush().await;
    assert_eq!(room.shard.conns.buffered(many), 0);
    let got = room.shard.during(receive(&mut room.members[0].1)).await.unwrap();
    assert_eq!((got.0, got.1.len()), (0x82, 16 * 1_024));
}

#[tokio::test]
async fn waiting_makes_no_outbox_full() {
    let limits = ConnLimits { outbox_bytes: 1_000, ..ConnLimits::default() };
    let room = Room::corked(limits).await;
    room.send(&"x".repeat(400));
    room.flush().await;
    let id = room.members[0].0;
    assert_eq!(room.shard.conns.buffered(id), 404);
    assert!(room.shard.conns.fits(id, 900, 0, 0), "what waits only for company leaves first");
    assert_eq!(room.shard.conns.buffered(id), 0);

    // More than half of what may wait does not wait for more.
    let id = room.members[1].0;
    room.shard.conns.send(id, &Message::text("x".repeat(100)));
    room.flush().await;
    assert_eq!(room.shard.conns.buffered(id), 0);
}

#[tokio::test]
async fn at_the_end_everything_leaves() {
    let mut room = Room::corked(ConnLimits::default()).await;
    room.send("last");
    room.flush().await;
    assert_eq!(room.waiting(), MEMBERS);
    room.flush_all().await;
    assert_eq!(room.waiting(), 0);
    room.receive_all("last").await;
}

#[tokio::test]
async fn d25_what_waits_leaves_before_an_abort() {
    let mut room = Room::corked(ConnLimits::default()).await;
    room.send("last");
    room.flush().await;
    room.shard.conns.abort(room.members[0].0);
    assert_eq!(room.rest_of(0).await, [(0x81, b"last".to_vec())]);
    room.flush_all().await; // one of those that waited is gone
    room.receive_all("last").await;
}

/// The texts up to the end.
async fn texts(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<Vec<u8>> {
    let frames = receive_all(stream).await;
    frames.into_iter().filter(|(first, _)| *first == 0x81).map(|(_, payload)| payload).collect()
}

/// What a member is to have got, and whether its end was begun.
#[derive(Default)]
struct Model {
    sent: Vec<Vec<u8>>,
    ended: bool,
    paused: bool,
}

/// Whatever is done in whatever order: nothing is lost, nothing comes twice or out of order, and what waits is known to
/// wait.
#[tokio::test]
async fn whatever_is_done_everything_leaves_in_order() {
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = ConnLimits { outbox_bytes: 64 * 1_024, ..ConnLimits::default() };
        let mut room = Room::corked(limits).await;
        let readers: Vec<_> = std::mem::take(&mut room.members)
            .into_iter()
            .map(|(id, stream)| {
                let (mut reading, writing) = stream.into_split();
                (id, writing, tokio::spawn(async move { texts(&mut reading).await }))
            })
            .collect();
        let mut models: Vec<_> = readers.iter().map(|_| Model::default()).collect();
        room.clock.step.store(1, Ordering::Relaxed);
        for n in 0..400_u32 {
            match rng.u32(0..20) {
                0..=9 => {
                    let text = format!("{n} {}", "x".repeat(rng.usize(0..600)));
                    let message = Message::text(text.clone());
                    let whom = rng.usize(1..4);
                    for (place, (id, ..)) in readers.iter().enumerate().filter(|(place, _)| place % whom == 0)
                    {
                        if !models[place].ended && room.shard.conns.fits(*id, text.len(), 0, 0) {
                            room.shard.conns.send(*id, &message);
                            models[place].sent.push(text.clone().into_bytes());
                        }
                    }
                }
                10..=14 => room.flush().await,
                15 => drop(room.clock.now.fetch_add(rng.u32(0..60), Ordering::Relaxed)),
                16 => {
                    let place = rng.usize(..readers.len());
                    let pause = !models[place].paused;
                    models[place].paused = pause;
                    room.shard.conns.set_paused(readers[place].0, pause);
                }
                17 if n % 3 == 0 => {
                    let place = rng.usize(..readers.len());
                    let id = readers[place].0;
                    models[place].ended = true;
                    match rng.u32(0..3) {
                        0 => room.shard.conns.abort(id),
                        1 => room.shard.conns.finish(id),
                        _ => room.shard.conns.close(id, &CloseCode::NORMAL.into()),
                    }
                }
                _ => {
                    let some = tokio::time::Duration::from_millis(1);
                    let _ = tokio::time::timeout(some, room.shard.turn()).await;
                }
            }
            let waits = readers.iter().any(|(id, ..)| room.shard.conns.is_left_waiting(*id));
            assert!(!waits || room.shard.conns.next_flush().is_some(), "seed {seed}, {n}");
        }
        // As a shard does: it rests until then, and flushes.
        while let Some(until) = room.shard.conns.next_flush() {
            let now = u32::try_from(until.as_millis()).unwrap();
            room.clock.now.fetch_max(now, Ordering::Relaxed);
            room.flush().await;
        }
        for (id, ..) in &readers {
            room.shard.conns.set_paused(*id, false);
            room.shard.conns.finish(*id);
        }
        for ((_, writing, reader), model) in readers.into_iter().zip(models) {
            drop(writing);
            let got = room.shard.during(reader).await.unwrap();
            assert_eq!(got.len(), model.sent.len(), "seed {seed}");
            assert!(got == model.sent, "seed {seed}: out of order");
        }
        room.shard.until(|shard| shard.conns.len() <= 1).await;
    }
}
