use super::*;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

fn config() -> Config {
    Config {
        backoff: Backoff::new(),
        connect_within: SECOND * 20,
        ping_after: SECOND * 30,
        pong_within: SECOND * 10,
        close_within: SECOND * 5,
        give_up: None,
    }
}

/// The rules with a clock that the test moves.
struct Rules {
    core: Core,
    now: Duration,
}

impl Rules {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        Self { core: Core::new(config, None, fastrand::Rng::with_seed(7)), now: Duration::ZERO }
    }

    /// What is to be done, in words.
    fn todo(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.core.command()).map(|command| words(&command)).collect()
    }

    /// Moves the clock to what is due next.
    fn wait(&mut self) -> Vec<String> {
        self.now = self.core.deadline().unwrap();
        self.core.tick(self.now);
        self.todo()
    }

    fn receive(&mut self, text: &str) -> Vec<String> {
        self.core.received(self.now, text.into());
        self.todo()
    }

    /// From waiting to a hello.
    fn connect(&mut self, hello: &str) -> Vec<String> {
        let mut todo = self.wait();
        self.core.opened();
        todo.extend(self.receive(hello));
        todo
    }

    fn closed(&mut self, code: u16) -> Vec<String> {
        self.core.ended(self.now, Cause::Closed { code, reason: String::new() });
        self.todo()
    }

    fn after(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }
}

fn words(command: &Command) -> String {
    match command {
        Command::Connect { after: None } => "connect".to_owned(),
        Command::Connect { after: Some(after) } => format!("connect after {after}"),
        Command::Text(text) => text.clone(),
        Command::Acknowledge(bytes) => format!(r#"{{"t":"ack","b":{bytes}}}"#),
        Command::Ping(number) => format!("ping {number}"),
        Command::Close(code) => format!("close {code}"),
        Command::Abort => "abort".to_owned(),
        Command::Longest(bytes) => format!("longest {bytes}"),
        Command::Stop { cause, unconfirmed } => format!("stop: {cause}{}", receipts(unconfirmed.as_ref())),
        Command::Emit(event) => match event {
            Event::Connected(hello) => match hello.gap {
                Some(Gap { after, lost }) => format!("hello at {}, gap after {after}: {lost:?}", hello.at),
                None => format!("hello at {}, resumed: {}", hello.at, hello.resumed),
            },
            Event::Message { position, data, .. } => format!("{position} {data}"),
            Event::Disconnected { cause, unconfirmed, .. } => {
                format!("lost: {cause}{}", receipts(unconfirmed.as_ref()))
            }
            Event::Raw(message) => format!("raw {:?}", message.as_text().unwrap_or_default()),
            other => format!("{other:?}"),
        },
    }
}

fn receipts(range: Option<&RangeInclusive<u64>>) -> String {
    range.map(|range| format!(" ({range:?})")).unwrap_or_default()
}

fn hello(at: &str) -> String {
    format!(r#"{{"t":"hello","at":"{at}"}}"#)
}

fn message(seq: u64) -> String {
    format!(r#"{{"t":"msg","s":{seq},"at":5,"d":{seq}}}"#)
}

#[test]
fn it_connects_reads_and_resumes_where_it_was() {
    let mut rules = Rules::new(|_| ());
    assert_eq!(rules.connect(&hello("a-4")), ["connect", "hello at a-4, resumed: false"]);
    assert_eq!(rules.receive(&message(5)), ["a-5 5"]);
    assert_eq!(rules.closed(1_006), ["lost: closed with 1006"]);
    assert_eq!(rules.connect(&hello("a-5")), ["connect after a-5", "hello at a-5, resumed: true"]);
    assert_eq!(rules.receive(&message(6)), ["a-6 6"]);
}

#[test]
fn a_gap_is_told_also_when_the_room_does_not_say_so() {
    let gap = r#"{"t":"hello","at":"a-9","gap":{"after":"a-4","lost":5}}"#;
    for (second, told) in [
        (gap, "hello at a-9, gap after a-4: Some(5)"),
        (
            r#"{"t":"hello","at":"b-2","gap":{"after":"a-4","lost":null}}"#,
            "hello at b-2, gap after a-4: None",
        ),
        (&hello("a-7"), "hello at a-7, gap after a-4: Some(3)"),
        (&hello("b-4"), "hello at b-4, gap after a-4: None"),
    ] {
        let mut rules = Rules::new(|_| ());
        rules.connect(&hello("a-4"));
        rules.closed(1_006);
        assert_eq!(rules.connect(second)[1], told);
        let at: Position = second.split('"').nth(7).unwrap().parse().unwrap();
        let next = rules.receive(&message(at.seq() + 1));
        assert_eq!(next, [format!("{} {1}", Position::new(at.epoch(), at.seq() + 1), at.seq() + 1)]);
    }
}

#[test]
fn a_room_that_goes_further_back_repeats_nothing() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-4"));
    rules.receive(&message(5));
    rules.closed(1_006);
    assert_eq!(rules.connect(&hello("a-3"))[1], "hello at a-3, resumed: true");
    assert_eq!(rules.receive(&message(4)), [""; 0]);
    assert_eq!(rules.receive(&message(5)), [""; 0]);
    assert_eq!(rules.receive(&message(6)), ["a-6 6"]);
}

#[test]
fn a_missing_number_closes_with_4000_and_resumes_at_once() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-4"));
    rules.receive(&message(5));
    assert_eq!(rules.receive(&message(7)), ["close 4000"]);
    assert_eq!(rules.receive(&message(8)), [""; 0], "what comes then is for nobody");
    assert_eq!(rules.closed(4_000), ["lost: a message is missing"]);
    assert_eq!(rules.core.deadline(), Some(rules.now), "at once");
    assert_eq!(rules.connect(&hello("a-5"))[0], "connect after a-5");
    assert_eq!(rules.receive(&message(5)), ["close 4000"], "a repeated number is one that is wrong");
    rules.closed(1_006);
    assert_ne!(rules.core.deadline(), Some(rules.now), "without progress there is a wait");
}

#[test]
fn a_close_that_nobody_answers_ends_in_time() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-4"));
    rules.receive(&message(9));
    assert_eq!(rules.wait(), ["abort", "lost: a message is missing"]);
    assert_eq!(rules.now, SECOND * 5);
}

#[test]
fn codes_say_whether_it_comes_back() {
    for (code, comes_back) in [(1_000, false), (1_008, false), (1_013, true), (4_500, false), (3_000, true)] {
        let mut rules = Rules::new(|_| ());
        rules.connect(&hello("a-4"));
        let todo = rules.closed(code);
        let word = if comes_back { "lost" } else { "stop" };
        assert_eq!(todo, [format!("{word}: closed with {code}")]);
        assert_eq!((rules.core.is_stopped(), rules.core.deadline().is_none()), (!comes_back, !comes_back));
    }
    let mut rules = Rules::new(|_| ());
    rules.wait();
    rules.core.failed(rules.now, Cause::Refused { status: 403 }, None);
    assert_eq!(rules.todo(), ["stop: refused with 403"]);
}

#[test]
fn a_server_may_say_when_to_come_back() {
    let mut rules = Rules::new(|_| ());
    rules.wait();
    rules.core.failed(rules.now, Cause::Refused { status: 503 }, Some(SECOND * 60));
    assert_eq!(rules.todo(), ["lost: refused with 503"]);
    assert!(rules.core.deadline().unwrap() >= SECOND * 60);
}

#[test]
fn waits_grow_until_a_connection_has_lasted() {
    // Random up to the bound: what is compared is the sum of many.
    let total = |failures_before: u32, lasts: Duration| -> Duration {
        (0..200)
            .map(|seed| {
                let mut rules = Rules::new(|_| ());
                rules.core.rng = fastrand::Rng::with_seed(seed);
                for _ in 0..failures_before {
                    rules.wait();
                    rules.core.failed(rules.now, Cause::Unreachable(String::new()), None);
                }
                rules.connect(&hello("a-1"));
                rules.after(lasts).closed(1_006);
                rules.core.deadline().unwrap() - rules.now
            })
            .sum()
    };
    let (first, sixth) = (total(0, Duration::ZERO), total(5, Duration::ZERO));
    assert!(sixth > first * 10, "{first:?} {sixth:?}");
    assert!(total(5, SECOND * 10) < first * 2);
}

#[test]
fn attempts_have_a_time_limit_and_their_number_too_if_one_is_set() {
    let mut rules = Rules::new(|config| config.give_up = Some(3));
    assert_eq!(rules.wait(), ["connect"]);
    assert_eq!(rules.wait(), ["abort", "lost: unreachable: no answer in time"]);
    rules.wait();
    rules.core.opened();
    assert_eq!(rules.wait(), ["abort", "lost: the server is silent"], "no hello");
    rules.wait();
    assert_eq!(rules.wait(), ["abort", "stop: unreachable: no answer in time"]);
    assert_eq!(rules.core.deadline(), None);
    let mut rules = Rules::new(|config| config.give_up = Some(2));
    for _ in 0..5 {
        rules.wait();
        rules.core.failed(rules.now, Cause::Unreachable(String::new()), None);
        rules.connect(&hello("a-1"));
        rules.closed(1_006);
    }
    assert!(!rules.core.is_stopped(), "not in a row");
}

#[test]
fn a_silent_server_is_asked_and_left() {
    let mut rules = Rules::new(|_| ());
    rules.connect(r#"{"t":"hello","at":"a-1","ping":["are you there?","yes"]}"#);
    assert_eq!(rules.wait(), ["are you there?"]);
    assert_eq!(rules.now, SECOND * 30);
    assert_eq!(rules.receive("yes"), [""; 0], "the answer is not the application's");
    assert_eq!(rules.receive("yes"), [r#"raw "yes""#], "but another one is");
    assert_eq!(rules.wait(), ["are you there?"]);
    assert_eq!(rules.wait(), ["abort", "lost: the server is silent"]);
    assert_eq!(rules.now, SECOND * 70);
}

#[test]
fn without_an_auto_response_it_asks_by_a_ping_of_the_protocol() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-1"));
    assert_eq!(rules.wait(), ["ping 0"]);
    rules.core.ponged(rules.now, &0_u64.to_be_bytes());
    assert_eq!(rules.wait(), ["ping 0"]);
    rules.receive("anything shows that it is there");
    assert_eq!(rules.core.deadline(), Some(rules.now + SECOND * 30));
}

#[test]
fn what_was_read_is_acknowledged_when_it_is_a_quarter_of_the_credit() {
    let mut rules = Rules::new(|_| ());
    let hello = r#"{"t":"hello","at":"a-0","credit":400}"#;
    rules.connect(hello);
    let ack = |bytes: usize| format!(r#"{{"t":"ack","b":{bytes}}}"#);
    assert_eq!(rules.receive(&"x".repeat(99 - hello.len())).len(), 1);
    assert_eq!(rules.receive("x")[0], ack(100));
    assert_eq!(rules.receive(&"x".repeat(250))[0], ack(250));
    assert_eq!(rules.receive("x").len(), 1);
}

#[test]
fn what_was_written_is_unconfirmed_until_a_pong_or_the_answer_to_a_close() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-1"));
    for receipt in 1..=3 {
        rules.core.wrote(receipt);
    }
    assert_eq!(rules.todo(), ["ping 1"], "one at a time");
    rules.core.ponged(rules.now, &1_u64.to_be_bytes());
    assert_eq!(rules.todo(), ["ping 3"]);
    assert_eq!(rules.closed(1_006), ["lost: closed with 1006 (2..=3)"]);
    rules.connect(&hello("a-1"));
    rules.core.wrote(4);
    rules.core.ponged(rules.now, &9_u64.to_be_bytes());
    rules.core.ponged(rules.now, b"what?");
    rules.todo();
    rules.core.close_asked(rules.now);
    assert!(rules.core.is_draining());
    rules.core.wrote(5);
    rules.core.drained(rules.now);
    assert_eq!(rules.todo(), ["close 1000"]);
    assert_eq!(rules.closed(1_000), ["stop: closed by this client"]);
}

#[test]
fn pongs_that_nobody_asked_for_ask_nothing() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-1"));
    rules.core.wrote(1);
    rules.core.wrote(2);
    assert_eq!(rules.todo(), ["ping 1"]);
    for _ in 0..100 {
        rules.core.ponged(rules.now, &0_u64.to_be_bytes());
    }
    assert_eq!(rules.todo(), [""; 0]);
    rules.core.ponged(rules.now, &1_u64.to_be_bytes());
    assert_eq!(rules.todo(), ["ping 2"]);
}

#[test]
fn a_close_that_is_not_answered_leaves_what_was_written_unconfirmed() {
    for end in [Some(1_006), Some(1_001), None] {
        let mut rules = Rules::new(|_| ());
        rules.connect(&hello("a-1"));
        rules.core.wrote(1);
        rules.core.close_asked(rules.now);
        rules.core.drained(rules.now);
        rules.todo();
        let todo = match end {
            Some(code) => rules.closed(code),
            None => rules.wait(),
        };
        assert_eq!(todo.last().unwrap(), "stop: closed by this client (1..=1)");
    }
}

#[test]
fn closing_works_in_each_state_and_has_an_end() {
    let stop = "stop: closed by this client";
    let mut waiting = Rules::new(|_| ());
    waiting.core.close_asked(waiting.now);
    assert_eq!(waiting.todo(), ["abort", stop]);
    let mut connecting = Rules::new(|_| ());
    connecting.wait();
    connecting.core.close_asked(connecting.now);
    assert_eq!(connecting.todo(), ["abort", stop]);
    let mut greeting = Rules::new(|_| ());
    greeting.wait();
    greeting.core.opened();
    greeting.core.close_asked(greeting.now);
    assert_eq!(greeting.todo(), ["close 1000"]);
    assert_eq!(greeting.wait(), ["abort", stop]);
    let mut writing = Rules::new(|_| ());
    writing.connect(&hello("a-1"));
    writing.core.close_asked(writing.now);
    assert_eq!(writing.wait(), ["close 1000"], "though it is not drained");
    assert_eq!(writing.wait(), ["abort", stop]);
    assert_eq!(writing.now, SECOND * 10);
    let mut resyncing = Rules::new(|_| ());
    resyncing.connect(&hello("a-1"));
    resyncing.receive(&message(9));
    resyncing.core.close_asked(resyncing.now);
    assert_eq!(resyncing.closed(4_000), [stop]);
}

#[test]
fn what_was_missed_comes_in_parts_and_nothing_is_said_meanwhile() {
    let mut rules = Rules::new(|_| ());
    let part = |at: &str| format!(r#"{{"t":"hello","at":"{at}","replay":1,"more":true}}"#);
    assert_eq!(rules.connect(&part("a-0"))[1], "hello at a-0, resumed: false");
    assert!(!rules.core.may_write());
    assert_eq!(rules.receive(&message(1)), ["a-1 1"]);
    assert_eq!(rules.closed(4_000), ["lost: closed with 4000"]);
    assert_eq!(rules.core.deadline(), Some(rules.now), "at once");
    assert_eq!(rules.connect(&part("a-1"))[0], "connect after a-1");
    rules.closed(4_000);
    assert_ne!(rules.core.deadline(), Some(rules.now), "that part was empty");
    rules.connect(&hello("a-1"));
    assert!(rules.core.may_write());
    rules.closed(1_006);
    rules.connect(&part("a-1"));
    rules.core.close_asked(rules.now);
    assert_eq!(rules.todo(), ["close 1000"], "what waits is not for such a connection");
}

#[test]
fn a_room_that_sends_it_away_for_ever_is_not_asked_without_a_pause() {
    let gap = |n: u64| format!(r#"{{"t":"hello","at":"a-{n}","gap":{{"after":"a-0","lost":1}}}}"#);
    let part = |n: u64| format!(r#"{{"t":"hello","at":"a-{n}","more":true,"gap":{{"after":"a-0"}}}}"#);
    let epoch = |n: u64| hello(&format!("{n}-0"));
    let hellos: [&dyn Fn(u64) -> String; 3] = [&gap, &part, &epoch];
    for hello in hellos {
        for brings in [false, true] {
            let mut rules = Rules::new(|_| ());
            let mut at_once = 0;
            for n in 0..50 {
                let text = hello(n);
                rules.connect(&text);
                if brings {
                    let at: Position = text.split('"').nth(7).unwrap().parse().unwrap();
                    rules.receive(&message(at.seq() + 1));
                }
                rules.closed(4_000);
                at_once += u32::from(rules.core.deadline() == Some(rules.now));
            }
            assert!(at_once <= 2, "{at_once} {}", hello(1));
        }
    }
}

#[test]
fn a_resync_of_a_quiet_room_is_followed_at_once() {
    let mut rules = Rules::new(|_| ());
    rules.connect(&hello("a-4"));
    rules.after(SECOND * 60).closed(1_006);
    for _ in 0..3 {
        rules.connect(&hello("a-4"));
        rules.after(SECOND * 60).closed(4_000);
        assert_eq!(rules.core.deadline(), Some(rules.now), "it has lasted");
    }
    rules.connect(&hello("a-4"));
    rules.closed(4_000);
    assert_ne!(rules.core.deadline(), Some(rules.now));
}

#[test]
fn a_part_that_does_not_go_on_is_left() {
    let mut rules = Rules::new(|_| ());
    let part = r#"{"t":"hello","at":"a-0","replay":9,"more":true,"ping":["ping","pong"]}"#;
    rules.connect(part);
    rules.after(SECOND * 15).receive(&message(1));
    let began = rules.now;
    let mut todo = Vec::new();
    while todo.iter().all(|did: &String| did != "abort") {
        assert!(rules.now <= began + SECOND * 20, "{todo:?}");
        todo.extend(rules.wait());
        rules.receive("pong");
    }
    assert_eq!(todo.last().unwrap(), "lost: the server is silent");
    assert_eq!(rules.now, began + SECOND * 20);
}

#[test]
fn who_does_not_speak_the_protocol_is_left_for_good() {
    for wrong in [r#"{"t":"hello"}"#, r#"{"t":"hello","at":"?"}"#] {
        let mut rules = Rules::new(|_| ());
        rules.wait();
        rules.core.opened();
        assert_eq!(rules.receive("before"), [r#"raw "before""#]);
        assert_eq!(rules.receive(wrong), ["close 1002"]);
        assert!(rules.closed(1_002)[0].starts_with("stop: the server does not speak do-sync"));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Wait,
    Early,
    Opened,
    Failed,
    Text(String),
    Closed(u16),
    Pong(u64),
    Write,
    Close,
    Drained,
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop_oneof![
        4 => (0..12_u64).prop_map(message),
        2 => (0..12_u64, "[ab]").prop_map(|(seq, epoch)| hello(&format!("{epoch}-{seq}"))),
        1 => "[a-z{}\":,0-9]{0,20}",
    ];
    prop_oneof![
        4 => Just(Step::Wait),
        1 => Just(Step::Early),
        4 => Just(Step::Opened),
        1 => Just(Step::Failed),
        12 => text.prop_map(Step::Text),
        2 => prop_oneof![Just(1_006_u16), Just(4_000), Just(1_013), Just(1_000)].prop_map(Step::Closed),
        1 => (0..9_u64).prop_map(Step::Pong),
        2 => Just(Step::Write),
        1 => Just(Step::Close),
        1 => Just(Step::Drained),
    ]
}

proptest! {
    /// Whatever comes in whatever order: numbers go up by one or a gap is told, each receipt is named at most once,
    /// connections do not overlap, and after the end nothing happens.
    #[test]
    fn the_promises_hold_in_any_order(steps in proptest::collection::vec(step(), 0..120), seed: u64) {
        let mut rules = Rules::new(|config| config.give_up = Some(20));
        rules.core.rng = fastrand::Rng::with_seed(seed);
        let (mut at, mut written, mut named, mut connected) = (None::<Position>, 0_u64, 0_u64, false);
        for step in steps {
            let stopped = rules.core.is_stopped();
            match step {
                Step::Wait => if let Some(due) = rules.core.deadline() { rules.now = rules.now.max(due); rules.core.tick(rules.now) },
                Step::Early => rules.core.tick(rules.now),
                Step::Opened => rules.core.opened(),
                Step::Failed => rules.core.failed(rules.now, Cause::Unreachable(String::new()), None),
                Step::Text(text) => rules.core.received(rules.now, text.into()),
                Step::Closed(code) => rules.core.ended(rules.now, Cause::Closed { code, reason: String::new() }),
                Step::Pong(number) => rules.core.ponged(rules.now, &number.to_be_bytes()),
                Step::Write => if rules.core.may_write() { written += 1; rules.core.wrote(written) },
                Step::Close => rules.core.close_asked(rules.now),
                Step::Drained => rules.core.drained(rules.now),
            }
            let mut commands = 0;
            while let Some(command) = rules.core.command() {
                commands += 1;
                match command {
                    Command::Connect { after } => {
                        prop_assert!(!connected);
                        prop_assert_eq!(after, at);
                        connected = true;
                    }
                    Command::Emit(Event::Connected(hello)) => {
                        prop_assert_eq!(hello.resumed, at.is_some() && hello.gap.is_none());
                        if !hello.resumed { at = Some(hello.at) }
                    }
                    Command::Emit(Event::Message { position, .. }) => {
                        let before = at.unwrap();
                        prop_assert_eq!((position.epoch(), position.seq()), (before.epoch(), before.seq() + 1));
                        at = Some(position);
                    }
                    Command::Emit(Event::Disconnected { unconfirmed, .. }) | Command::Stop { unconfirmed, .. } => {
                        connected = false;
                        if let Some(range) = unconfirmed {
                            prop_assert!(*range.start() > named && *range.end() == written);
                        }
                        named = written;
                    }
                    _ => {}
                }
            }
            prop_assert!(commands <= 4, "bounded");
            prop_assert!(!stopped || commands == 0);
            prop_assert_eq!(rules.core.is_stopped(), rules.core.deadline().is_none());
            prop_assert!(!rules.core.is_waiting() || !connected);
        }
    }
}
