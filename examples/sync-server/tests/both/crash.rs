//! `kill -9` amid writes: nothing that anybody was told is lost, whatever the moment.

use crate::common::{Editor, Http, JSON, Place, Row, Server, created, eventually, request, within};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::task::JoinSet;

/// How many change the room at once.
const WRITERS: usize = 4;

/// The room keeps the latest so many for certain.
const KEPT: i64 = 1_000;

/// A report that a writer sent: the paths of its changes, and the number of the last if it was answered.
struct Report {
    paths: Vec<String>,
    answered: Option<i64>,
}

/// Reports single changes and lists, one after the other, until the server is gone.
async fn write(address: SocketAddr, name: String, answered: Arc<AtomicUsize>) -> Vec<Report> {
    let host = address.to_string();
    let mut reports = Vec::new();
    let Ok(mut http) = Http::try_connect(address).await else { return reports };
    for number in 0.. {
        let length = number % 8;
        let paths: Vec<_> = (0..length.max(1)).map(|n| format!("{name}/{number}/{n}")).collect();
        let body = if length == 0 {
            created(&paths[0])
        } else {
            json!(paths.iter().map(|path| json!({ "kind": "created", "path": path })).collect::<Vec<_>>())
                .to_string()
        };
        reports.push(Report { paths, answered: None });
        let sent = http.send(request("POST", "/notify", &[("host", &host), JSON], &body).as_bytes()).await;
        let answer = match sent {
            Ok(()) => within("an answer or the end", http.answer("POST")).await,
            Err(error) => Err(error),
        };
        let Ok(answer) = answer else { break };
        assert_eq!(answer.status, 200, "{}", answer.text());
        reports.last_mut().unwrap().answered = answer.json()["seq"].as_i64();
        answered.fetch_add(1, Ordering::Relaxed);
    }
    reports
}

/// Records all changes that an editor receives until the server is gone.
async fn listen(mut editor: Editor) -> Vec<Row> {
    let mut seen = Vec::new();
    while let Some(Ok(message)) = editor.message().await {
        let message: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
        if message["type"] == "change" {
            seen.push(Row {
                seq: message["seq"].as_i64().unwrap(),
                path: message["path"].as_str().unwrap().to_owned(),
            });
        }
    }
    seen
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let cycles = if std::env::var_os("DO_LONG").is_some_and(|value| value == "1") { 100 } else { 5 };
    let place = Place::new();
    let mut history = BTreeMap::new();
    for cycle in 0..cycles {
        let server = place.start().await;
        check_greeting(&server, &history).await;
        one_life(&place, server, cycle, &mut history).await;
    }
    let server = place.start().await;
    check_greeting(&server, &history).await;
    let next = server.notify_created("at the end").await;
    assert_eq!(Some(next), history.keys().last().map(|last| last + 1), "no number is used twice or left out");
    server.stop().await;
}

/// The latest of what is known are shown to a joiner.
async fn check_greeting(server: &Server, history: &BTreeMap<i64, String>) {
    let (_editor, hello) = Editor::join(server).await;
    let shown: Vec<_> = hello["recent"].as_array().unwrap().iter().collect();
    let mut expected: Vec<_> = history.iter().rev().take(100).collect();
    expected.reverse();
    assert_eq!(shown.len(), expected.len());
    for (shown, (seq, path)) in shown.into_iter().zip(expected) {
        assert_eq!((&shown["seq"], &shown["path"]), (&json!(seq), &json!(path)));
    }
}

/// Writers write, editors listen and files change until the server is killed. Then its file is compared with what
/// they were told.
async fn one_life(place: &Place, server: Server, cycle: usize, history: &mut BTreeMap<i64, String>) {
    let mut listeners = JoinSet::new();
    for _ in 0..2 {
        listeners.spawn(listen(Editor::join(&server).await.0));
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(server.address, format!("{cycle}/{writer}"), Arc::clone(&answered)));
    }
    // Another moment in each life.
    let enough = 20 + cycle * 7 % 40;
    let mut files = 0;
    eventually("the reports are answered", async || {
        files += 1;
        place.write(format!("file-{cycle}-{files}"), "x");
        answered.load(Ordering::Relaxed) >= enough
    })
    .await;
    server.kill().await;

    let reports = within("the writers end", writers.join_all()).await.concat_all();
    let seen = within("the listeners end", listeners.join_all()).await.concat_all();
    let rows = place.rows();
    let kept: BTreeMap<i64, &str> = rows.iter().map(|row| (row.seq, row.path.as_str())).collect();
    let last = rows.last().unwrap().seq;
    let first = rows.first().unwrap().seq;
    assert!(first == 1 || first <= last - KEPT + 1, "{first} to {last}: too much was pruned");
    assert_eq!(rows.len(), usize::try_from(last - first + 1).unwrap(), "the numbers have gaps");

    for row in &seen {
        assert!(
            row.seq < first || kept.get(&row.seq) == Some(&row.path.as_str()),
            "{row:?} was received and is lost"
        );
    }
    let numbers: BTreeMap<&str, i64> = rows.iter().map(|row| (row.path.as_str(), row.seq)).collect();
    for report in &reports {
        let found: Vec<i64> =
            report.paths.iter().filter_map(|path| numbers.get(path.as_str()).copied()).collect();
        if let Some(answered) = report.answered.filter(|answered| *answered >= first) {
            assert_eq!(found.last(), Some(&answered), "{:?} was answered and is lost", report.paths);
        }
        let whole = found.len() == report.paths.len() || found.first() == Some(&first);
        assert!(found.is_empty() || whole, "a part of {:?} is there", report.paths);
        assert!(found.windows(2).all(|pair| pair[1] == pair[0] + 1), "{:?} is scattered", report.paths);
    }
    // A number that was ever seen has only one meaning, now and in all earlier lives.
    for row in rows.into_iter().chain(seen) {
        let path = history.entry(row.seq).or_insert_with(|| row.path.clone());
        assert_eq!(*path, row.path, "number {} was given twice", row.seq);
    }
    let answers: Vec<i64> = reports.iter().filter_map(|report| report.answered).collect();
    assert!(answers.len() >= enough);
    assert_eq!(answers.iter().collect::<HashSet<_>>().len(), answers.len());
}

trait ConcatAll<T> {
    fn concat_all(self) -> Vec<T>;
}

impl<T> ConcatAll<T> for Vec<Vec<T>> {
    fn concat_all(self) -> Vec<T> {
        self.into_iter().flatten().collect()
    }
}

#[tokio::test]
async fn a_server_that_is_killed_while_it_sleeps_has_everything() {
    let place = Place::new();
    let server = place.start_drowsy().await;
    let (mut editor, _) = Editor::join(&server).await;
    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!(editor.next().await["seq"], 1);
    server.asleep().await;
    server.kill().await;
    assert!(!matches!(editor.message().await, Some(Ok(_))), "the connection ends without a word");
    let server = place.start().await;
    let (_editor, hello) = Editor::join(&server).await;
    assert_eq!((&hello["editors"], &hello["recent"][0]["path"]), (&json!(1), &json!("x")));
    assert_eq!(server.notify_created("y").await, 2);
}
