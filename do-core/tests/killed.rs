//! A process that is killed while it applies migrations. Alone in its program: a process that is being started holds the
//! locks of its parent for a moment, and would keep hosts of other tests from starting.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use do_core::{
    Body, Namespace, Stub, Timestamp,
    testing::Probe,
    tokio::{Host, ManualClock, Migration},
};
use serde_json::{Value, json};
use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Tells the process that is to be killed its directory.
const DIRECTORY: &str = "DO_CORE_KILLED_DIRECTORY";
/// Objects that are to be removed, each in a folder.
const OBJECTS: usize = 64;

fn list() -> [Migration; 3] {
    [
        Migration::new("v1").created("ROOM").created("OLD"),
        Migration::new("v2").deleted("OLD"),
        Migration::new("v3").created("OLD"),
    ]
}

/// A host that has applied so many of the list.
fn start(dir: &Path, clock: &ManualClock, applied: usize, namespaces: &[&str]) -> Host {
    let builder =
        Host::builder(dir).clock(clock.clone()).shards(1).migrations(list().into_iter().take(applied));
    namespaces.iter().fold(builder, |builder, name| builder.object::<Probe<_>>(*name)).start().unwrap()
}

async fn run(host: &Host, namespace: &str, steps: Value) -> Value {
    let request = http::Request::post("http://probe/").body(Body::from(steps.to_string())).unwrap();
    let answer = host.namespace(namespace).unwrap().named("a").unwrap().fetch(request).await.unwrap();
    answer.into_body().json(1 << 20).await.unwrap()
}

/// Applies the second migration to the directory that it is told. In any other process it does nothing.
#[test]
fn the_process_that_is_killed() {
    if let Some(dir) = env::var_os(DIRECTORY) {
        drop(start(Path::new(&dir), &ManualClock::at(Timestamp::from_millis(1_000)), 2, &["ROOM"]));
    }
}

/// Starts that process and kills it once it has applied the migration and no more than `left` folders are left. Whether
/// anything was left to be removed.
fn kill(dir: &Path, left: usize) -> bool {
    let manifest = dir.join("namespaces.json");
    let before = fs::read(&manifest).unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let folders = || fs::read_dir(dir.join("OLD")).map_or(0, Iterator::count);
    while child.try_wait().unwrap().is_none() && (fs::read(&manifest).unwrap() == before || folders() > left)
    {
    }
    let _ = child.kill(); // fails when it has ended
    child.wait().unwrap();
    let manifest: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    manifest["removing"] != json!([])
}

#[tokio::test]
async fn what_a_killed_process_has_not_removed_is_removed_by_the_next() {
    let mut cut_off = 0;
    // The first one before anything is removed. On a busy machine the process may be faster than its end, so there are
    // more than are needed.
    for (round, left) in [OBJECTS + 1, OBJECTS, 32, 1, 0].into_iter().chain([OBJECTS; 45]).enumerate() {
        if round >= 5 && cut_off > 0 {
            break;
        }
        let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(Timestamp::from_millis(1_000)));
        let dir = dir.path();
        let host = start(dir, &clock, 1, &["ROOM", "OLD"]);
        run(&host, "ROOM", json!([{"sql": "INSERT INTO n VALUES (8)"}])).await;
        run(&host, "OLD", json!([{"sql": "INSERT INTO n VALUES (7)"}, {"set_alarm": 5_000}])).await;
        drop(host);
        for n in 0..OBJECTS {
            let folder = dir.join(format!("OLD/x{n}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("x.sqlite"), "of another object").unwrap();
        }
        cut_off += i32::from(kill(dir, left));

        let host = start(dir, &clock, 3, &["ROOM", "OLD"]);
        assert!(!dir.join("OLD").exists(), "{left}");
        clock.advance(Duration::from_secs(6));
        let old = run(&host, "OLD", json!([{"sql": "SELECT n FROM n"}, "get_alarm", "runs"])).await;
        assert_eq!(old, json!([[], null, []]), "{left}");
        assert_eq!(run(&host, "ROOM", json!([{"sql": "SELECT n FROM n"}])).await, json!([[8]]), "{left}");
    }
    assert!(cut_off > 0, "no process was killed in the middle");
}
