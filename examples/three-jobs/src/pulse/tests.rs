use super::*;
use do_core::{kit::Kit, kit::Strike, tokio::HostStub};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// 2027-03-26, a Friday, 09:00 in Zurich. On the Sunday after it, clocks are put forward.
const FRIDAY: Timestamp = Timestamp::from_millis(1_806_048_000_000);

/// The object, and what makes its reports fail: `POST /break` and `POST /mend`.
struct Breakable<S: ObjectState>(S, Pulse<S>);

impl<S: ObjectState> DurableObject<S> for Breakable<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state.clone(), Pulse::new(state)?))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let sql = match request.uri().path() {
            "/break" => {
                "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'no more paper'); END"
            }
            "/mend" => "DROP TRIGGER full",
            _ => return self.1.fetch(request).await,
        };
        self.0.sql().exec(sql, ())?;
        Ok(reply::text("done"))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        self.1.alarm(info).await
    }
}

/// A world that begins at this time, with one object that was asked for.
fn kit(now: Timestamp, beat: Duration) -> (Kit, HostStub) {
    let kit = Kit::builder().now(now).var("BEAT_SECONDS", beat.as_secs().to_string());
    let kit = kit.object::<Breakable<_>>("PULSE").start().unwrap();
    let stub = kit.namespace("PULSE").unwrap().named("main").unwrap();
    (kit, stub)
}

async fn ask(pulse: &HostStub, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::builder().method(method).uri(format!("http://pulse{path}"));
    let request = request.body(serde_json::to_vec(body).unwrap().into()).unwrap();
    let response = pulse.fetch(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().bytes(1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn get(pulse: &HostStub, path: &str) -> Value {
    let (status, answer) = ask(pulse, "GET", path, &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

/// When the runs of a job that are known of were, the first one first; each began when it was to and succeeded.
async fn runs(pulse: &HostStub, name: &str) -> Vec<i64> {
    let jobs = get(pulse, "/").await;
    let runs = jobs["runs"].as_array().unwrap().iter().rev().filter(|run| run["name"] == name);
    let at = |run: &Value| {
        assert_eq!((&run["began"], &run["outcome"]), (&run["scheduled"], &json!("done")), "{run}");
        run["scheduled"].as_i64().unwrap()
    };
    runs.map(at).collect()
}

/// The times from one to another, this far from each other.
fn times(from: Timestamp, to: Timestamp, every: Duration) -> Vec<i64> {
    let times = std::iter::successors(Some(from), |at| Some(*at + every));
    times.take_while(|at| *at <= to).map(Timestamp::as_millis).collect()
}

#[test]
fn the_object_has_at_most_40_lines_of_code() {
    let object = include_str!("../pulse.rs").split("#[cfg(test)]").next().unwrap();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    assert_eq!(object.lines().filter(is_code).count(), 40);
}

#[test]
fn each_job_comes_at_its_time_over_a_weekend_and_a_change_of_clocks() {
    let begin = FRIDAY - 2 * HOUR;
    let (kit, pulse) = kit(begin, 6 * HOUR);
    kit.run(async {
        let (status, until) =
            ask(&pulse, "POST", "/notes", &json!({"text": "away", "seconds": 108_000})).await;
        assert_eq!((status, until), (200, json!((begin + 30 * HOUR).as_millis())));
        kit.advance(29 * HOUR).await;
        kit.evict(&pulse);
        assert_eq!(get(&pulse, "/notes").await, json!([{"text": "away", "seconds": 108_000}]));
        kit.crash();
        kit.advance(HOUR).await;
        assert_eq!(get(&pulse, "/notes").await, json!([]));

        kit.hibernate(&pulse).await.unwrap();
        kit.advance(DAY).await;
        kit.lose_power();
        kit.advance(2 * DAY).await;
        let end = begin + 102 * HOUR;
        assert_eq!(kit.now(), end);
        // The clocks of Zurich are an hour ahead from Sunday on.
        let mornings = [FRIDAY, FRIDAY + 3 * DAY - HOUR, FRIDAY + 4 * DAY - HOUR];
        assert_eq!(runs(&pulse, "report").await, mornings.map(Timestamp::as_millis));
        assert_eq!(runs(&pulse, "beat").await, times(begin + 6 * HOUR, end, 6 * HOUR));
        let report = |at: Timestamp, notes| json!({"at": at, "notes": notes});
        let reports = json!([report(mornings[2], 0), report(mornings[1], 0), report(mornings[0], 1)]);
        assert_eq!(get(&pulse, "/reports").await, reports);
        let due = |name: &str, at: Timestamp| {
            json!({
                "id": name, "name": name, "due": at, "scheduled": at, "attempts": 0, "is_running": false,
                "recurs": true, "is_slot": false, "payload": null,
            })
        };
        let pending = json!([due("beat", end + 6 * HOUR), due("report", mornings[2] + DAY)]);
        assert_eq!(get(&pulse, "/").await["pending"], pending, "no note, no sweep");
    });
}

#[test]
fn a_report_that_fails_stops_nothing_and_is_a_dead_letter_that_can_be_replayed() {
    let begin = FRIDAY - 60 * SECOND;
    let (kit, pulse) = kit(begin, 30 * SECOND);
    kit.run(async {
        assert_eq!(ask(&pulse, "POST", "/notes", &json!({"text": "x", "seconds": 9_999})).await.0, 200);
        assert_eq!(ask(&pulse, "POST", "/break", &Value::Null).await.0, 200);
        kit.advance(65 * SECOND).await;
        kit.evict(&pulse);
        kit.advance(20 * SECOND).await;
        kit.crash();
        kit.advance(515 * SECOND).await;

        assert_eq!(runs(&pulse, "beat").await, times(begin + 30 * SECOND, begin + 600 * SECOND, 30 * SECOND));
        let jobs = get(&pulse, "/").await;
        let failed = jobs["runs"].as_array().unwrap().iter().filter(|run| run["name"] == "report");
        assert_eq!(failed.filter(|run| run["scheduled"] == json!(FRIDAY)).count(), 7, "{jobs}");
        let dead = jobs["dead"].as_array().unwrap();
        assert_eq!(
            (dead.len(), &dead[0]["name"], &dead[0]["scheduled"]),
            (1, &json!("report"), &json!(FRIDAY))
        );
        assert!(dead[0]["error"].as_str().unwrap().contains("no more paper"), "{dead:?}");
        assert_eq!(get(&pulse, "/reports").await, json!([]));

        assert_eq!(ask(&pulse, "POST", "/mend", &Value::Null).await.0, 200);
        let id = &dead[0]["id"];
        assert_eq!(ask(&pulse, "POST", "/replay", id).await.0, 202);
        kit.evict(&pulse);
        kit.advance(SECOND).await;
        assert_eq!(get(&pulse, "/reports").await, json!([{"at": FRIDAY, "notes": 1}]), "that of its day");
        assert_eq!(get(&pulse, "/").await["dead"], json!([]));
        assert_eq!(ask(&pulse, "POST", "/replay", id).await.0, 404);
    });
}

#[test]
fn everyone_connected_gets_the_beats_over_hibernations() {
    let (kit, pulse) = kit(FRIDAY, 30 * SECOND);
    kit.run(async {
        let (ann, bob) =
            (kit.connect(&pulse, "/ws").await.unwrap(), kit.connect(&pulse, "/ws").await.unwrap());
        for beat in times(FRIDAY + 30 * SECOND, FRIDAY + 90 * SECOND, 30 * SECOND) {
            kit.advance(30 * SECOND).await;
            for client in [&ann, &bob] {
                assert_eq!(client.text().await.unwrap(), format!(r#"{{"beat":{beat}}}"#));
            }
            kit.hibernate(&pulse).await.unwrap();
        }
    });
}

#[test]
fn another_interval_begins_anew_with_the_next_deployment() {
    let (kit, pulse) = kit(FRIDAY, 30 * SECOND);
    kit.run(async {
        assert_eq!(get(&pulse, "/notes").await, json!([]));
        kit.advance(35 * SECOND).await;
        kit.deploy(Kit::builder().var("BEAT_SECONDS", "7").object::<Breakable<_>>("PULSE")).unwrap();
        let pulse = kit.namespace("PULSE").unwrap().named("main").unwrap();
        assert_eq!(get(&pulse, "/notes").await, json!([]));
        kit.advance(14 * SECOND).await;
        let beats = [FRIDAY + 30 * SECOND, FRIDAY + 42 * SECOND, FRIDAY + 49 * SECOND];
        assert_eq!(runs(&pulse, "beat").await, beats.map(Timestamp::as_millis));
    });
}

type MakeStrike = fn(HostStub) -> Strike;

/// Adds a note and lets it expire; strikes at that step. How many steps there were.
fn note_over_a_strike(strike: Option<(u64, MakeStrike)>) -> u64 {
    let (kit, pulse) = kit(FRIDAY, 30 * SECOND);
    kit.run(async {
        if let Some((step, strike)) = strike {
            kit.at_step(step, &strike(pulse.clone()));
        }
        let note = serde_json::to_vec(&json!({"text": "x", "seconds": 45})).unwrap();
        let note = http::Request::post("http://pulse/notes").body(note.into()).unwrap();
        let is_kept = pulse.fetch(note).await.is_ok();
        kit.advance(100 * SECOND).await;
        let steps = kit.steps();
        kit.heal();
        assert_eq!(get(&pulse, "/notes").await, json!([]), "{:?}", strike.map(|(step, _)| step));
        if is_kept {
            // A run that was cut off counts as failed and is tried again.
            let jobs = get(&pulse, "/").await;
            let done = jobs["runs"].as_array().unwrap().iter().rev().filter(|run| run["outcome"] == "done");
            let done: Vec<_> = done.map(|run| run["scheduled"].as_i64().unwrap()).collect();
            assert_eq!(
                done,
                times(FRIDAY + 30 * SECOND, FRIDAY + 90 * SECOND, 30 * SECOND),
                "{:?}",
                strike.map(|(step, _)| step)
            );
        }
        steps
    })
}

#[test]
fn a_strike_at_any_moment_loses_no_deadline() {
    let strikes: [MakeStrike; 3] = [|_| Strike::LosePower, |_| Strike::Crash, Strike::Evict];
    for step in 0..note_over_a_strike(None) {
        for strike in strikes {
            note_over_a_strike(Some((step, strike)));
        }
    }
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let (kit, pulse) = kit(FRIDAY, 30 * SECOND);
    let ask = async |method: &str, path: &str, body: &'static str| {
        let request = http::Request::builder().method(method).uri(format!("http://pulse{path}"));
        let response = kit.serve(crate::route, request.body(body.into()).unwrap()).await;
        (response.status().as_u16(), response.into_body().text(1_000).await.unwrap())
    };
    kit.run(async {
        for (method, path, body, status) in [
            ("GET", "/nothing", "", 404),
            ("DELETE", "/notes", "", 404),
            ("GET", "/ws", "", 400),
            ("POST", "/notes", "x", 400),
            ("POST", "/notes", r#"{"text":"x"}"#, 400),
            ("POST", "/notes", r#"{"text":"x","seconds":-1}"#, 400),
            ("POST", "/replay", "x", 400),
            ("POST", "/replay", "7", 404),
        ] {
            let answer = ask(method, path, body).await;
            assert_eq!(answer.0, status, "{method} {path} {body}: {answer:?}");
        }
        assert_eq!(ask("GET", "/notes", "").await.1, "[]");
    });
    drop(pulse);
}
