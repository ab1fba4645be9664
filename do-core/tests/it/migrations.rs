//! Class migrations: applied once per directory; a rename keeps everything, a deletion nothing, and what does not fit
//! changes nothing.

use crate::common::{START, ask, soon};
use do_core::{
    Error, ErrorKind, Namespace, ObjectName, Timestamp,
    testing::Probe,
    tokio::{Host, HostStub, ManualClock, Migration},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use tempfile::TempDir;

/// A directory, and the time.
struct Place {
    dir: TempDir,
    clock: ManualClock,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), clock: ManualClock::at(Timestamp::from_millis(START)) }
    }

    /// A host with the probe under these names, and with this list if there is one.
    fn start(&self, list: Option<&[Migration]>, names: &[&str]) -> Result<Host, Error> {
        let mut builder = Host::builder(self.dir.path()).clock(self.clock.clone()).shards(1);
        if let Some(list) = list {
            builder = builder.migrations(list.to_vec());
        }
        for name in names {
            builder = builder.object::<Probe<_>>(*name);
        }
        builder.start()
    }

    /// The message with which it does not start. Nothing in the directory is another than before.
    fn refused(&self, list: Option<&[Migration]>, names: &[&str]) -> String {
        let before = contents(self.dir.path());
        let error = self.start(list, names).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert_eq!(contents(self.dir.path()), before, "{error}");
        error.to_string()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }
}

/// All files but the lock, which every start writes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("host.lock") {
                files.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn stub(host: &Host, namespace: &str, name: &str) -> HostStub {
    host.namespace(namespace).unwrap().named(name).unwrap()
}

/// The value of the last step.
async fn last(host: &Host, namespace: &str, name: &str, steps: Value) -> Value {
    let mut all = ask(&stub(host, namespace, name), steps).await.unwrap();
    all.as_array_mut().unwrap().pop().unwrap()
}

async fn put(host: &Host, namespace: &str, name: &str, number: i64) {
    last(host, namespace, name, json!([{"sql": format!("INSERT INTO n VALUES ({number})")}])).await;
}

async fn got(host: &Host, namespace: &str, name: &str) -> Value {
    last(host, namespace, name, json!([{"sql": "SELECT n FROM n"}])).await
}

fn id(host: &Host, namespace: &str) -> String {
    host.namespace(namespace).unwrap().id_of(&ObjectName::new("a").unwrap()).unwrap().to_string()
}

/// Lets what is due happen.
async fn pass(place: &Place, host: &Host, namespace: &str, ms: u64) {
    place.clock.advance(Duration::from_millis(ms));
    let namespace = host.namespace(namespace).unwrap();
    let nobody = namespace.id_of(&ObjectName::new("nobody").unwrap()).unwrap();
    for _ in 0..4 {
        soon(namespace.why_awake(&nobody)).await.unwrap();
    }
}

fn v1() -> Migration {
    Migration::new("v1").created("ROOM").created("OLD")
}

fn v2() -> Migration {
    Migration::new("v2").renamed("ROOM", "LOBBY")
}

fn v3() -> Migration {
    Migration::new("v3").deleted("OLD")
}

#[tokio::test]
async fn a_rename_keeps_ids_data_and_a_pending_alarm_and_touches_no_file() {
    let place = Place::new();
    let host = place.start(Some(&[v1()]), &["ROOM", "OLD"]).unwrap();
    put(&host, "ROOM", "a", 7).await;
    put(&host, "OLD", "a", 8).await;
    let set =
        last(&host, "ROOM", "a", json!([{"on_alarm": [{"note_of": ["name"]}]}, {"set_alarm": 5_000}])).await;
    let before = id(&host, "ROOM");
    drop(host);
    let files = contents(&place.path("ROOM"));
    assert_eq!(files.len(), 1);

    let host = place.start(Some(&[v1(), v2()]), &["LOBBY", "OLD"]).unwrap();
    assert_eq!(contents(&place.path("ROOM")), files);
    assert!(!place.path("LOBBY").exists());
    assert_eq!(host.namespace("ROOM").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(id(&host, "LOBBY"), before);
    pass(&place, &host, "LOBBY", 5_000).await;
    assert_eq!(got(&host, "LOBBY", "a").await, json!([7]));
    let runs = last(&host, "LOBBY", "a", json!(["runs"])).await;
    assert_eq!(runs[0]["scheduled"], set);
    let lines = last(&host, "LOBBY", "a", json!([{"sql": "SELECT line FROM log"}])).await;
    assert_eq!(lines, json!(["[\"a\"]"]), "it ran once and knew its name");
    // An id that was kept as text leads there, and is none of another namespace.
    let lobby = host.namespace("LOBBY").unwrap();
    let by_id = lobby.get(&lobby.parse_id(&before).unwrap()).unwrap();
    assert_eq!(ask(&by_id, json!([{"sql": "SELECT n FROM n"}])).await.unwrap(), json!([[7]]));
    assert_eq!(host.namespace("OLD").unwrap().parse_id(&before).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(got(&host, "OLD", "a").await, json!([8]));
}

#[tokio::test]
async fn a_deletion_removes_data_and_alarms_and_the_name_begins_anew() {
    let place = Place::new();
    let host = place.start(Some(&[v1()]), &["ROOM", "OLD"]).unwrap();
    for namespace in ["ROOM", "OLD"] {
        put(&host, namespace, "a", 7).await;
        last(&host, namespace, "a", json!([{"set_alarm": 5_000}])).await;
    }
    let before = id(&host, "OLD");
    drop(host);
    let list = [v1(), v3(), Migration::new("v4").created("OLD")];
    let host = place.start(Some(&list[..2]), &["ROOM"]).unwrap();
    assert!(!place.path("OLD").exists());
    drop(host);
    let host = place.start(Some(&list), &["ROOM", "OLD"]).unwrap();
    pass(&place, &host, "ROOM", 6_000).await;
    assert_ne!(id(&host, "OLD"), before, "it has a key of its own");
    assert_eq!(got(&host, "OLD", "a").await, json!([]));
    assert_eq!(last(&host, "OLD", "a", json!(["get_alarm", "runs"])).await, json!([]));
    let runs = last(&host, "ROOM", "a", json!(["runs"])).await;
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "the other namespace's alarm: {runs}");
    put(&host, "OLD", "a", 9).await;
    drop(host);
    let host = place.start(Some(&list), &["ROOM", "OLD"]).unwrap();
    assert_eq!(got(&host, "OLD", "a").await, json!([9]), "the deletion was applied once");
    assert_eq!(got(&host, "ROOM", "a").await, json!([7]));
}

#[tokio::test]
async fn a_name_that_was_given_away_or_deleted_twice_is_always_empty() {
    let place = Place::new();
    let mut list = vec![Migration::new("0").created("A")];
    let mut seen = Vec::new();
    for (tag, migration) in [
        ("1", Migration::new("1").renamed("A", "B").created("A")),
        ("2", Migration::new("2").deleted("A").created("A")),
        ("3", Migration::new("3").deleted("B").renamed("A", "B").created("A")),
    ] {
        let host = place.start(Some(&list), &["A"]).unwrap();
        assert_eq!(got(&host, "A", "a").await, json!([]), "before {tag}");
        put(&host, "A", "a", 7).await;
        seen.push(id(&host, "A"));
        list.push(migration);
    }
    let host = place.start(Some(&list), &["A", "B"]).unwrap();
    assert_eq!(got(&host, "A", "a").await, json!([]));
    assert_eq!(got(&host, "B", "a").await, json!([7]));
    seen.push(id(&host, "A"));
    assert_eq!(id(&host, "B"), seen[2]);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4, "four namespaces were called A");
}

#[test]
fn all_of_a_list_is_applied_to_a_new_directory_and_names_may_be_exchanged() {
    let place = Place::new();
    let exchange = Migration::new("swap").renamed("A", "C").renamed("B", "A").renamed("C", "B");
    let list = [Migration::new("v1").created("A").created("B"), exchange];
    let ids = |list: &[Migration]| {
        let host = place.start(Some(list), &["A", "B"]).unwrap();
        [id(&host, "A"), id(&host, "B")]
    };
    let [a, b] = ids(&list[..1]);
    assert_eq!(ids(&list), [b, a]);
    assert_eq!(ids(&list), ids(&list), "once");
}

#[test]
fn a_list_that_cannot_be_applied_is_refused_and_changes_nothing() {
    let place = Place::new();
    drop(place.start(Some(&[v1()]), &["ROOM", "OLD"]).unwrap());
    let more = |migration: Migration| place.refused(Some(&[v1(), migration]), &["ROOM", "OLD"]);
    for (migration, expected) in [
        (
            Migration::new("v2").created("ROOM"),
            "the migration \"v2\" creates ROOM, but there is a namespace ROOM",
        ),
        (
            Migration::new("v2").renamed("ROOM", "OLD"),
            "\"v2\" renames ROOM to OLD, but there is a namespace OLD",
        ),
        (Migration::new("v2").renamed("ROOM", "ROOM"), "there is a namespace ROOM"),
        (Migration::new("v2").renamed("NONE", "NEW"), "renames NONE to NEW, but there is no namespace NONE"),
        (Migration::new("v2").deleted("NONE"), "\"v2\" deletes NONE, but there is no namespace NONE"),
        (Migration::new("v2").deleted("OLD").deleted("OLD"), "there is no namespace OLD"),
        (Migration::new("v1").created("NEW"), "two migrations have the tag \"v1\""),
        (Migration::new("").created("NEW"), "the tag of a migration must have 1 to 256 bytes: \"\""),
        (Migration::new("x".repeat(257)), "the tag of a migration must have 1 to 256 bytes"),
        (Migration::new("v2").created("../x"), "the namespace \"../x\" must have 1 to 64 ASCII letters"),
        (Migration::new("v2").renamed("ROOM", "a.2"), "the namespace \"a.2\" must have"),
        (Migration::new("v2").deleted(""), "the namespace \"\" must have"),
        (v2(), "the namespace \"ROOM\" is registered, but no migration leaves one of that name"),
        (v3(), "the namespace \"OLD\" is registered, but no migration leaves one of that name"),
    ] {
        let message = more(migration);
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    // What was refused is not remembered.
    drop(place.start(Some(&[v1(), v2()]), &["LOBBY", "OLD"]).unwrap());
}

#[test]
fn a_history_that_the_directory_does_not_have_is_refused() {
    let place = Place::new();
    drop(place.start(Some(&[v1(), v2()]), &["LOBBY"]).unwrap());
    let refused = |list: &[Migration]| place.refused(Some(list), &[]);
    let older = refused(&[v1()]);
    assert!(older.contains("has applied the migration \"v2\", which the list does not have"), "{older}");
    assert!(refused(&[]).contains("has applied the migration \"v1\", which the list does not have"));
    let without = place.refused(None, &["LOBBY"]);
    assert!(without.contains("has applied the migration \"v1\""), "{without}");
    let turned = refused(&[v2(), v1()]);
    assert!(turned.contains("has applied the migration \"v1\" where the list has \"v2\""), "{turned}");
    let edited = refused(&[v1().created("MORE"), v2()]);
    assert!(
        edited.contains("\"v1\" was applied when it was another: it creates ROOM, creates OLD"),
        "{edited}"
    );
    drop(place.start(Some(&[v1(), v2()]), &["LOBBY"]).unwrap());
}

#[test]
fn a_namespace_that_no_migration_creates_is_refused_in_a_new_directory_too() {
    let place = Place::new();
    assert!(place.refused(Some(&[]), &["ROOM"]).contains("\"ROOM\" is registered, but no migration"));
    assert!(place.refused(Some(&[v1()]), &["ROOM", "NEW"]).contains("\"NEW\" is registered"));
    assert!(!place.path("namespaces.json").exists());
    drop(place.start(Some(&[]), &[]).unwrap());
    drop(place.start(None, &["ROOM"]).unwrap());
    assert!(!place.path("namespaces.json").exists(), "nothing is to be remembered");
}

#[tokio::test]
async fn a_directory_without_migrations_goes_over_to_them_with_its_objects() {
    let place = Place::new();
    let host = place.start(None, &["ROOM", "OLD", "KEPT"]).unwrap();
    for namespace in ["ROOM", "OLD", "KEPT"] {
        put(&host, namespace, "a", 7).await;
        last(&host, namespace, "a", json!([{"set_alarm": 5_000}])).await;
    }
    let before = id(&host, "ROOM");
    drop(host);
    let onto = [Migration::new("v1").created("ROOM").renamed("ROOM", "KEPT")];
    let message = place.refused(Some(&onto), &[]);
    assert!(
        message.contains("the directory has objects of KEPT from a time without migrations"),
        "{message}"
    );

    let host = place.start(Some(&[v1(), v2(), v3()]), &["LOBBY"]).unwrap();
    assert!(!place.path("OLD").exists());
    pass(&place, &host, "LOBBY", 5_000).await;
    assert_eq!(id(&host, "LOBBY"), before);
    assert_eq!(got(&host, "LOBBY", "a").await, json!([7]));
    assert_eq!(last(&host, "LOBBY", "a", json!(["runs"])).await.as_array().map(Vec::len), Some(1));
    drop(host);
    // What no migration has named yet is still there, its overdue alarm too.
    let list = [v1(), v2(), v3(), Migration::new("v4").created("KEPT").created("OLD")];
    let host = place.start(Some(&list), &["LOBBY", "KEPT", "OLD"]).unwrap();
    pass(&place, &host, "KEPT", 1).await;
    assert_eq!(got(&host, "KEPT", "a").await, json!([7]));
    assert_eq!(last(&host, "KEPT", "a", json!(["runs"])).await.as_array().map(Vec::len), Some(1));
    assert_eq!(got(&host, "OLD", "a").await, json!([]));
}

#[tokio::test]
async fn a_namespace_that_is_not_registered_keeps_its_data_and_alarms_over_a_rename() {
    let place = Place::new();
    let host = place.start(Some(&[v1()]), &["ROOM"]).unwrap();
    put(&host, "ROOM", "a", 7).await;
    last(&host, "ROOM", "a", json!([{"set_alarm": 5_000}])).await;
    drop(host);
    let host = place.start(Some(&[v1(), v2()]), &["OLD"]).unwrap();
    pass(&place, &host, "OLD", 6_000).await;
    drop(host);
    let host = place.start(Some(&[v1(), v2()]), &["LOBBY"]).unwrap();
    pass(&place, &host, "LOBBY", 1).await;
    assert_eq!(got(&host, "LOBBY", "a").await, json!([7]));
    assert_eq!(last(&host, "LOBBY", "a", json!(["runs"])).await.as_array().map(Vec::len), Some(1));
}

/// What a start leaves that is killed after it wrote that `v3` is applied, and after some of the removal.
fn cut_off(place: &Place, removed: fn(&Path)) {
    let file = place.path("namespaces.json");
    let before = fs::read(&file).unwrap();
    let alarms: Vec<_> = ["alarms.sqlite", "alarms.sqlite-wal"]
        .iter()
        .filter_map(|name| Some((place.path(name), fs::read(place.path(name)).ok()?)))
        .collect();
    let room = contents(&place.path("OLD"));
    drop(place.start(Some(&[v1(), v3()]), &["ROOM"]).unwrap());
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((&manifest["retired"], &manifest["removing"]), (&json!(["OLD"]), &json!([])));
    manifest["removing"] = json!(["OLD"]);
    fs::write(&file, manifest.to_string()).unwrap();
    fs::write(place.path("namespaces.json.next"), &before[..10]).unwrap();
    for (path, bytes) in
        alarms.iter().chain(&room.into_iter().map(|(p, b)| (p.into(), b)).collect::<Vec<_>>())
    {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    removed(&place.path("OLD"));
}

#[tokio::test]
async fn a_removal_that_was_cut_off_is_finished_by_the_next_start() {
    type Removal = fn(&Path);
    let cases: [(&str, Removal); 3] = [
        ("nothing was removed", |_| {}),
        ("one file was", |folder| fs::remove_file(contents(folder).into_keys().next().unwrap()).unwrap()),
        ("all was", |folder| fs::remove_dir_all(folder).unwrap()),
    ];
    for (what, removed) in cases {
        let place = Place::new();
        let host = place.start(Some(&[v1()]), &["ROOM", "OLD"]).unwrap();
        for name in ["a", "b", "c"] {
            put(&host, "OLD", name, 7).await;
        }
        last(&host, "OLD", "a", json!([{"set_alarm": 5_000}])).await;
        put(&host, "ROOM", "a", 8).await;
        soon(host.shutdown(Duration::from_secs(5))).await.unwrap();
        cut_off(&place, removed);
        // An older program neither starts nor goes on with it.
        place.refused(Some(&[v1()]), &["ROOM", "OLD"]);
        let list = [v1(), v3(), Migration::new("v4").created("OLD")];
        let host = place.start(Some(&list), &["ROOM", "OLD"]).unwrap();
        assert!(!place.path("OLD").exists(), "{what}");
        pass(&place, &host, "OLD", 6_000).await;
        assert_eq!(got(&host, "OLD", "a").await, json!([]), "{what}");
        assert_eq!(last(&host, "OLD", "a", json!(["runs"])).await, json!([]), "{what}");
        assert_eq!(got(&host, "ROOM", "a").await, json!([8]), "{what}");
        let manifest: Value =
            serde_json::from_slice(&fs::read(place.path("namespaces.json")).unwrap()).unwrap();
        assert_eq!(manifest["removing"], json!([]), "{what}");
        assert_eq!(manifest["namespaces"], json!({"OLD": "OLD.2", "ROOM": "ROOM"}), "{what}");
    }
}

#[test]
fn what_is_left_of_a_write_that_was_cut_off_does_not_matter() {
    let place = Place::new();
    fs::write(place.path("namespaces.json.next"), "{").unwrap();
    drop(place.start(Some(&[v1()]), &["ROOM"]).unwrap());
    drop(place.start(Some(&[v1(), v2()]), &["LOBBY"]).unwrap());
}

#[test]
fn a_file_that_is_damaged_or_newer_is_named_and_nothing_is_removed() {
    let place = Place::new();
    drop(place.start(Some(&[v1()]), &["ROOM"]).unwrap());
    let path = place.path("namespaces.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::create_dir(place.path("x")).unwrap();
    for (damaged, kind, expected) in [
        ("{".to_owned(), ErrorKind::Platform, "namespaces.json: EOF"),
        (
            text.replace("\"format\": 1", "\"format\": 2, \"more\": 0"),
            ErrorKind::Invalid,
            "a newer version of do-core",
        ),
        (
            text.replace("\"format\": 1", "\"format\": 1, \"more\": 0"),
            ErrorKind::Platform,
            "unknown field `more`",
        ),
        (
            text.replace("\"removing\": []", "\"removing\": [\"OLD/../x\"]"),
            ErrorKind::Platform,
            "\"OLD/../x\" is no key of a namespace",
        ),
        (
            text.replace("\"removing\": []", "\"removing\": [\"ROOM\"]"),
            ErrorKind::Platform,
            "\"ROOM\" is to be removed, and no key of a namespace that was deleted",
        ),
        (
            text.replace("\"retired\": []", "\"retired\": [\"room\"]"),
            ErrorKind::Platform,
            "\"room\" is the key of two namespaces",
        ),
        (
            text.replace("\"ROOM\": \"ROOM\"", "\"ROOM\": \"OLD\""),
            ErrorKind::Platform,
            "\"OLD\" is the key of two namespaces",
        ),
    ] {
        assert_ne!(damaged, text);
        fs::write(&path, &damaged).unwrap();
        let error = place.start(Some(&[v1()]), &["ROOM"]).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
        assert!(place.path("x").exists());
    }
}
