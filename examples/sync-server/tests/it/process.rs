//! The process: its command line, its end, and its sole claim on the data directory.

use crate::{
    binary::sync_server,
    common::{Editor, HANDSHAKE, Http, JSON, Place, Reader, Server, created, eventually, request, within},
};
use std::{
    fs,
    process::{Output, Stdio},
};
use tokio::process::Command;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Runs it to its end, which comes by itself.
async fn output(command: &mut Command) -> Output {
    within("it ends", command.output()).await.unwrap()
}

/// The single line on standard error of a run that printed nothing else and ended with this code.
async fn complaint(command: &mut Command, code: i32) -> String {
    let output = output(command).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(output.stdout, b"");
    let line = stderr.strip_suffix('\n').expect(&stderr);
    assert!(!line.contains('\n'), "{line}");
    line.to_owned()
}

#[tokio::test]
async fn a_bad_command_line_is_one_line_and_exit_code_2() {
    let place = Place::new();
    place.write("file", "");
    let folder = place.folder();
    let (folder, missing, file) = (folder.to_str().unwrap(), folder.join("nothing"), folder.join("file"));
    for (args, reason) in [
        (&[][..], "name the folder to watch"),
        (&[missing.to_str().unwrap()], "it does not exist"),
        (&[file.to_str().unwrap()], "it is not a folder"),
        (&[folder, folder], "more than one folder"),
        (&[folder, "--verbose"], "--verbose"),
        (&[folder, "-x"], "-x"),
        (&[folder, "--listen"], "--listen"),
        (&[folder, "--listen", "here"], "--listen"),
        (&[folder, "--listen", "127.0.0.1"], "--listen"),
        (&[folder, "--listen", "127.0.0.1:70000"], "--listen"),
        (&[folder, "--idle", "0"], "--idle"),
        (&[folder, "--idle", "1.5"], "--idle"),
        (&[folder, "--idle", "-1"], "--idle"),
        (&[folder, "--idle"], "--idle"),
        (&[folder, "--idle", "1", "--idle", "2"], "--idle is given twice"),
        (&[folder, "--data", ""], "--data"),
        (&[folder, "--data", folder], "it is the watched folder itself"),
        (&[folder, "--data", file.to_str().unwrap()], "it is not a directory"),
        (&["a\nb"], "it does not exist"),
    ] {
        let line = complaint(sync_server().args(args), 2).await;
        assert!(line.starts_with("sync-server: ") && line.contains(reason), "{args:?}: {line}");
    }
}

#[tokio::test]
async fn help_and_version_are_printed_with_success() {
    for (flag, beginning) in [("--help", "Broadcasts"), ("--version", "sync-server ")] {
        let output = output(sync_server().arg(flag)).await;
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
        assert!(output.stdout.starts_with(beginning.as_bytes()));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_output_that_takes_nothing_is_one_line_too() {
    let place = Place::new();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut serve = sync_server();
    serve.arg(place.folder()).args(["--listen", "127.0.0.1:0", "--data"]).arg(place.data());
    let mut help = sync_server();
    help.arg("--help");
    for command in [&mut serve, &mut help] {
        let child = command.stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let output = within("it ends", child.wait_with_output()).await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.starts_with("sync-server: ") && stderr.lines().count() == 1, "{stderr}");
    }
}

#[tokio::test]
async fn a_folder_that_disappears_ends_it_with_one_line() {
    let place = Place::new();
    let mut server = place.start().await;
    let (mut editor, _) = Editor::join(&server).await;
    fs::remove_dir_all(place.folder()).unwrap();
    assert_eq!(editor.close_code().await, CloseCode::Away);
    drop(editor);
    assert_eq!(server.ended().await.0.code(), Some(1));
    assert_eq!(server.logged(&["sync-server: ", "watched"]), 1);
}

#[tokio::test]
async fn data_lies_under_xdg_state_home_by_default() {
    let place = Place::new();
    let mut command = sync_server();
    command.env("XDG_STATE_HOME", place.data()).arg(place.folder()).args(["--listen", "127.0.0.1:0"]);
    let server = Server::spawn(&mut command).await;
    assert_eq!(server.notify_created("x").await, 1);
    let folders: Vec<_> =
        fs::read_dir(place.data().join("sync-server")).unwrap().map(Result::unwrap).collect();
    assert_eq!(folders.len(), 1);
    let name = folders[0].file_name().into_string().unwrap();
    assert!(name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    assert!(folders[0].path().join("SYNC_ROOM").is_dir());
}

#[tokio::test]
async fn an_address_in_use_and_a_useless_data_directory_are_one_line() {
    let place = Place::new();
    let server = place.start().await;
    let address = server.address.to_string();
    let other = Place::new();
    let mut command = sync_server();
    command.arg(other.folder()).args(["--listen", &address, "--data"]).arg(other.data());
    let line = complaint(&mut command, 1).await;
    assert!(line.starts_with(&format!("sync-server: cannot listen on {address}: ")), "{line}");

    let mut command = sync_server();
    command.arg(other.folder()).args(["--listen", "127.0.0.1:0", "--data", "/dev/null/data"]);
    let line = complaint(&mut command, 1).await;
    assert!(line.starts_with("sync-server: ") && line.contains("/dev/null/data"), "{line}");
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_told_who_has_it() {
    let place = Place::new();
    let server = place.start().await;
    let mut command = sync_server();
    command.arg(place.folder()).args(["--listen", "127.0.0.1:0", "--data"]).arg(place.data());
    let line = complaint(&mut command, 1).await;
    let data = place.data().canonicalize().unwrap();
    let holder = fs::read_to_string(data.join("host.lock")).unwrap();
    assert_eq!(
        line,
        format!("sync-server: the data directory {} is in use by process {holder}", data.display())
    );
    assert_eq!(server.notify_created("x").await, 1, "the first is not disturbed");
    server.stop().await;
    place.start().await.stop().await;
}

#[tokio::test]
async fn sigterm_closes_editors_with_1001_and_exits_with_0() {
    let place = Place::new();
    let mut server = place.start().await;
    let (mut first, _) = Editor::join(&server).await;
    let (second, _) = Editor::join(&server).await;
    first.next().await;
    assert_eq!(server.notify_created("x").await, 1);
    server.terminate();
    for mut editor in [first, second] {
        assert_eq!(editor.next().await["path"], "x");
        assert_eq!(editor.close_code().await, CloseCode::Away);
        assert!(editor.message().await.is_none());
    }
    assert_eq!(server.ended().await.0.code(), Some(0));
    assert_eq!(place.rows().len(), 1);
}

#[tokio::test]
async fn sigterm_ends_streams_behind_what_waits_and_their_clients_come_back() {
    let place = Place::new();
    let mut server = place.start().await;
    let (mut reader, _) = Reader::open(&server).await;
    assert_eq!(reader.data("editors").await["editors"], 1);
    assert_eq!(server.notify_created("x").await, 1);
    server.terminate();
    assert_eq!(reader.data("change").await["path"], "x");
    assert_eq!(reader.try_next().await, None);
    assert_eq!(server.ended().await.0.code(), Some(0));

    let server = place.start().await;
    assert_eq!(server.notify_created("y").await, 2);
    let (mut reader, _) = Reader::resume(&server, &reader.last()).await;
    assert_eq!(reader.data("change").await["path"], "y");
}

#[tokio::test]
async fn sigterm_does_not_wait_for_editors_that_are_mute() {
    let place = Place::new();
    let mut server = place.start().await;
    let host = server.address.to_string();
    let mut headers = vec![("host", host.as_str())];
    headers.extend(HANDSHAKE);
    let mut mute = Http::connect(server.address).await;
    mute.send(request("GET", "/ws", &headers, "").as_bytes()).await.unwrap();
    assert_eq!(mute.answer("GET").await.unwrap().status, 101);
    server.terminate();
    assert_eq!(server.ended().await.0.code(), Some(0));
}

#[tokio::test]
async fn requests_under_way_are_answered_while_it_shuts_down() {
    let place = Place::new();
    let mut server = place.start().await;
    let host = server.address.to_string();
    let (mut editor, _) = Editor::join(&server).await;
    // Three requests of which the server has but a part.
    let health = request("GET", "/healthz", &[("host", &host)], "");
    let mut healthz = Http::connect(server.address).await;
    healthz.send(&health.as_bytes()[..health.len() - 2]).await.unwrap();
    let body = created("late");
    let length = body.len().to_string();
    let mut report = Http::connect(server.address).await;
    let head = request("POST", "/notify", &[("host", &host), JSON, ("content-length", &length)], "");
    report.send(head.as_bytes()).await.unwrap();
    report.send(&body.as_bytes()[..5]).await.unwrap();
    let _unused = Http::connect(server.address).await;
    // The server has them once it has answered what came after them.
    assert_eq!(server.ask("GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(server.notify_created("early").await, 1);
    assert_eq!(editor.next().await["path"], "early");

    server.terminate();
    assert_eq!(editor.close_code().await, CloseCode::Away);
    // While the editor has not left, new connections are taken; how long it waits for that is not the point.
    if let Ok(mut late) = Http::try_connect(server.address).await
        && late.send(health.as_bytes()).await.is_ok()
        && let Ok(answer) = within("an answer or the end", late.answer("GET")).await
    {
        assert_eq!(answer.status, 503);
    }
    drop(editor);
    healthz.send(b"\r\n").await.unwrap();
    let answer = within("an answer", healthz.answer("GET")).await.unwrap();
    assert_eq!(answer.status, 503);
    assert_ne!(answer.error(), "");
    report.send(&body.as_bytes()[5..]).await.unwrap();
    let answer = within("an answer", report.answer("POST")).await.unwrap();
    assert_eq!(answer.status, 503);
    assert_ne!(answer.error(), "");
    // It ends the connection after its last answer, and does not wait for one that never asked.
    for http in [&mut healthz, &mut report] {
        assert_eq!(within("the end", http.rest()).await.unwrap(), b"");
    }
    assert_eq!(server.ended().await.0.code(), Some(0));
    assert_eq!(place.rows().iter().map(|row| row.path.as_str()).collect::<Vec<_>>(), ["early"]);
}

#[tokio::test]
async fn the_room_leaves_memory_when_nobody_needs_it() {
    let place = Place::new();
    let server = place.start_drowsy().await;
    assert_eq!(server.constructed().await, 0, "nobody asked for it yet");
    assert_eq!(server.notify_created("x").await, 1);
    server.asleep().await;
    assert_eq!(server.notify_created("x").await, 2);
    eventually("it is back", async || server.constructed().await == 2).await;
    server.asleep().await;
}
