//! Files that become smaller while their objects have nothing to do.

use crate::common::*;
use serde_json::json;
use std::path::Path;

/// Bytes of the only object's file, without its log.
fn file_bytes(folder: &Path) -> u64 {
    let mut entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let bytes = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => file_bytes(&path),
        path if path.extension().is_some_and(|end| end == "sqlite") => entry.metadata().unwrap().len(),
        _ => 0,
    };
    entries.by_ref().map(bytes).sum()
}

#[tokio::test]
async fn b2_a_file_shrinks_step_by_step_and_its_object_leaves_as_any_other() {
    let rig = Rig::new();
    let folder = rig.dir.path().join("PROBE");
    let fill = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO big SELECT i, zeroblob(3000) FROM n";
    rig.last("a", json!([{"sql": "CREATE TABLE big (id INTEGER PRIMARY KEY, a)"}, {"sql": fill}])).await;
    rig.last("a", json!([{"sql": "DELETE FROM big WHERE id % 10 <> 0"}])).await;
    rig.settle().await;
    assert!(rig.is_awake("a").await);

    rig.pass(10).await;
    rig.pass_in_steps(500, 10).await;
    let bytes = file_bytes(&folder);
    assert!(bytes < 2_000_000, "{bytes} of 4 MB, of which 1 MB is kept");
    let left = rig.last("a", json!([{"sql": "SELECT count(*) || '/' || sum(length(a)) FROM big"}])).await;
    assert_eq!(left, json!(["100/300000"]));

    // It does not stay for the sake of it, in the middle of it neither.
    rig.last("a", json!([{"sql": "DELETE FROM big"}, {"sql": fill}])).await;
    rig.last("a", json!([{"sql": "DELETE FROM big WHERE id % 10 <> 0"}])).await;
    rig.pass(10_000).await;
    rig.pass(10_000).await;
    assert!(!rig.is_awake("a").await);
    assert_eq!(rig.last("a", json!([{"sql": "SELECT count(*) FROM big"}])).await, json!([100]));
    rig.pass_in_steps(500, 10).await;
    let bytes = file_bytes(&folder);
    assert!(bytes < 2_000_000, "{bytes}: what was left to do is done by the next instance");
}
