//! Two editors over TCP and changes of real files: from the disk to the socket.

use crate::{
    binary::sync_server,
    common::{Editor, Place, Server},
};
use serde_json::{Value, json};
use std::{fs, path::Path, time::Duration};
use tokio::time::timeout;

/// A server with two editors.
async fn two_editors(place: &Place) -> (Server, [Editor; 2]) {
    let server = place.start().await;
    let (mut first, _) = Editor::join(&server).await;
    let (second, hello) = Editor::join(&server).await;
    assert_eq!(hello["recent"], json!([]));
    assert_eq!(first.next().await, json!({ "type": "editors", "editors": 2 }));
    (server, [first, second])
}

/// The next change, without its time, the same at both.
async fn change(editors: &mut [Editor; 2]) -> Value {
    let [first, second] = editors;
    let (mut seen, other) = (first.next().await, second.next().await);
    assert_eq!(seen, other);
    let at = seen.as_object_mut().unwrap().remove("at").unwrap();
    assert!(at.as_i64().unwrap() > 1_700_000_000_000, "{at} is in Unix milliseconds");
    seen
}

#[tokio::test]
async fn two_editors_see_a_file_come_change_move_and_go() {
    let place = Place::new();
    let (server, mut editors) = two_editors(&place).await;
    let expect = |seq: i64, kind: &str, path: &str| json!({ "type": "change", "seq": seq, "kind": kind, "path": path });

    place.write("a.txt", "1");
    assert_eq!(change(&mut editors).await, expect(1, "created", "a.txt"));
    place.write("a.txt", "22");
    assert_eq!(change(&mut editors).await, expect(2, "modified", "a.txt"));
    fs::rename(place.folder().join("a.txt"), place.folder().join("b.txt")).unwrap();
    let mut renamed = expect(3, "renamed", "b.txt");
    renamed["from"] = json!("a.txt");
    assert_eq!(change(&mut editors).await, renamed);
    fs::remove_file(place.folder().join("b.txt")).unwrap();
    assert_eq!(change(&mut editors).await, expect(4, "removed", "b.txt"));
    server.stop().await;
}

#[tokio::test]
async fn half_a_rename_is_removed_or_created_and_an_atomic_save_modified() {
    let place = Place::new();
    place.write("kept.txt", "1");
    place.write("leaves.txt", "1");
    let outside = place.folder().parent().unwrap().join("outside.txt");
    let (_server, mut editors) = two_editors(&place).await;
    fs::rename(place.folder().join("leaves.txt"), &outside).unwrap();
    let seen = change(&mut editors).await;
    assert_eq!((&seen["kind"], &seen["path"]), (&json!("removed"), &json!("leaves.txt")));
    fs::rename(&outside, place.folder().join("returns.txt")).unwrap();
    let seen = change(&mut editors).await;
    assert_eq!((&seen["kind"], &seen["path"]), (&json!("created"), &json!("returns.txt")));
    fs::write(&outside, "new content").unwrap();
    fs::rename(&outside, place.folder().join("kept.txt")).unwrap();
    let seen = change(&mut editors).await;
    assert_eq!((&seen["kind"], &seen["path"]), (&json!("modified"), &json!("kept.txt")));
}

#[tokio::test]
async fn git_and_ignored_files_are_not_reported_and_other_dot_files_are() {
    let place = Place::new();
    fs::create_dir(place.folder().join(".git")).unwrap();
    fs::create_dir(place.folder().join("target")).unwrap();
    place.write(".gitignore", "*.log\ntarget/\n");
    let (_server, mut editors) = two_editors(&place).await;
    for hidden in [".git/HEAD", "x.log", "target/out"] {
        place.write(hidden, "x");
    }
    place.write(".env", "x");
    let seen = change(&mut editors).await;
    assert_eq!((&seen["seq"], &seen["kind"], &seen["path"]), (&json!(1), &json!("created"), &json!(".env")));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_name_that_is_not_utf8_is_escaped() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let place = Place::new();
    let (_server, mut editors) = two_editors(&place).await;
    fs::write(place.folder().join(OsStr::from_bytes(b"caf\xe9 5%")), "x").unwrap();
    assert_eq!(change(&mut editors).await["path"], "caf%E9 5%25");
    place.write("über 5%", "x");
    assert_eq!(change(&mut editors).await["path"], "über 5%");
}

#[tokio::test]
async fn changes_before_anybody_listens_are_in_the_greeting() {
    let place = Place::new();
    place.write("old", "x");
    let server = place.start().await;
    place.write("new", "x");
    // The first who is told of it may come too early, so this one waits for it.
    let (mut first, hello) = Editor::join(&server).await;
    if hello["recent"] == json!([]) {
        assert_eq!(first.next().await["path"], "new");
    }
    let (_second, hello) = Editor::join(&server).await;
    let recent = hello["recent"].as_array().unwrap();
    assert_eq!(recent.iter().map(|c| &c["path"]).collect::<Vec<_>>(), ["new"], "what was there is no change");
}

#[tokio::test]
async fn a_large_change_of_the_folder_arrives_whole() {
    let place = Place::new();
    let (_server, mut editors) = two_editors(&place).await;
    fs::create_dir(place.folder().join("many")).unwrap();
    for n in 0..2_500 {
        place.write(format!("many/{n:04}"), "x");
    }
    let mut files = std::collections::BTreeSet::new();
    let mut seq = 0;
    while files.len() < 2_500 {
        let seen = change(&mut editors).await;
        seq += 1;
        assert_eq!(seen["seq"], seq, "no number is left out");
        let path = seen["path"].as_str().unwrap();
        if path.starts_with("many/") && seen["kind"] == "created" {
            assert!(files.insert(path.to_owned()), "{path} is created twice");
        }
    }
}

#[tokio::test]
async fn the_data_directory_inside_the_folder_is_never_watched() {
    let place = Place::new();
    let data = place.folder().join("state/data");
    let server = Server::spawn(
        sync_server().arg(place.folder()).arg("--data").arg(&data).args(["--listen", "127.0.0.1:0"]),
    )
    .await;
    let (mut editor, hello) = Editor::join(&server).await;
    assert_eq!(hello["recent"], json!([]), "making the directory is no change");
    // Each report is a write in there.
    for seq in 1..=20 {
        assert_eq!(server.notify_created("reported").await, seq);
        assert_eq!(editor.next().await["path"], "reported");
    }
    fs::write(data.join("by hand"), "x").unwrap();
    place.write("state/beside", "x");
    let seen = editor.next().await;
    assert_eq!((&seen["seq"], &seen["path"]), (&json!(21), &json!("state/beside")));
}

/// Waits, because that nothing happens for a time is what it says.
#[tokio::test]
async fn watching_its_own_repository_while_idle_gives_no_changes_in_5_s() {
    let place = Place::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = sync_server();
    command.arg(repository).args(["--listen", "127.0.0.1:0", "--data"]).arg(place.data());
    let server = Server::spawn(&mut command).await;
    let (mut editor, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 1, "recent": [] }));
    if let Ok(message) = timeout(Duration::from_secs(5), editor.message()).await {
        panic!("something happened: {message:?}");
    }
    let (_second, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 2, "recent": [] }));
    server.stop().await;
}
