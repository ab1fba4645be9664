//! The watcher on real folders. Nothing waits for time to pass: each step ends with a mark, a file whose `created`
//! comes after everything that happened before it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use sync_server::native::watch::{Batch, RawChange, Timing, WatchError, Watcher};
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;

/// Far beyond what any step needs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Long enough that a test whose thread has to wait for a processor does not split what belongs together.
const TIMING: Timing = Timing { quiet: Duration::from_millis(200), longest: Duration::from_secs(2) };

struct Watched {
    root: PathBuf,
    changes: Receiver<Batch>,
    watcher: Watcher,
    marks: u32,
    _directory: TempDir,
}

/// Watches a new folder that `prepare` has filled.
fn watch(prepare: impl FnOnce(&Path)) -> Watched {
    watch_without(prepare, &[])
}

fn watch_without(prepare: impl FnOnce(&Path), exclude: &[&str]) -> Watched {
    let directory = tempfile::tempdir().unwrap();
    // The watched folder is a subfolder, so that files can move out of it on the same disk.
    let root = directory.path().canonicalize().unwrap().join("root");
    fs::create_dir(&root).unwrap();
    prepare(&root);
    let exclude = exclude.iter().map(|name| root.join(name)).collect();
    let (watcher, changes) = Watcher::start_with(root.clone(), exclude, TIMING).unwrap();
    Watched { root, changes, watcher, marks: 0, _directory: directory }
}

impl Watched {
    /// Does something in the folder and returns all changes that it led to.
    async fn after(&mut self, act: impl FnOnce(&Path)) -> Vec<String> {
        act(&self.root);
        self.marks += 1;
        let mark = format!("mark-{}", self.marks);
        write(&self.root.join(&mark), "");
        let mark = format!("created {mark}");
        let mut seen = Vec::new();
        loop {
            seen.extend(self.batch().await.unwrap().iter().map(ToString::to_string));
            if let Some(at) = seen.iter().position(|change| *change == mark) {
                seen.remove(at);
                return seen;
            }
        }
    }

    async fn batch(&mut self) -> Result<Vec<RawChange>, WatchError> {
        let batch = tokio::time::timeout(TIMEOUT, self.changes.recv()).await;
        batch.expect("no change within the time limit").expect("the watcher ended")
    }
}

fn write(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
}

fn outside(root: &Path, name: &str) -> PathBuf {
    root.parent().unwrap().join(name)
}

fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    fs::rename(from, to).unwrap();
}

#[tokio::test]
async fn a_file_is_created_modified_renamed_and_removed() {
    let mut folder = watch(|_| {});
    assert_eq!(folder.after(|root| write(&root.join("a"), "1")).await, ["created a"]);
    assert_eq!(folder.after(|root| write(&root.join("a"), "22")).await, ["modified a"]);
    assert_eq!(folder.after(|root| rename(root.join("a"), root.join("b"))).await, ["renamed a -> b"]);
    assert_eq!(folder.after(|root| fs::remove_file(root.join("b")).unwrap()).await, ["removed b"]);
}

#[tokio::test]
async fn many_writes_are_one_change_and_a_passing_file_is_none() {
    let mut folder = watch(|root| write(&root.join("old"), ""));
    let seen = folder.after(|root| {
        for n in 0..10 {
            write(&root.join("new"), &"x".repeat(n));
            write(&root.join("old"), &"x".repeat(n));
        }
        write(&root.join("passing"), "");
        fs::remove_file(root.join("passing")).unwrap();
    });
    assert_eq!(seen.await, ["created new", "modified old"]);
}

#[tokio::test]
async fn a_file_that_is_removed_and_written_again_is_modified() {
    let mut folder = watch(|root| write(&root.join("a"), "1"));
    let seen = folder.after(|root| {
        fs::remove_file(root.join("a")).unwrap();
        write(&root.join("a"), "other");
    });
    assert_eq!(seen.await, ["modified a"]);
}

#[tokio::test]
async fn an_atomic_save_is_one_modification() {
    let mut folder = watch(|root| write(&root.join("a"), "1"));
    let by_rename = folder.after(|root| {
        write(&root.join(".a.tmp"), "2");
        rename(root.join(".a.tmp"), root.join("a"));
    });
    assert_eq!(by_rename.await, ["modified a"]);
    let with_backup = folder.after(|root| {
        write(&root.join("4913"), "");
        fs::remove_file(root.join("4913")).unwrap();
        rename(root.join("a"), root.join("a~"));
        write(&root.join("a"), "3");
        fs::remove_file(root.join("a~")).unwrap();
    });
    assert_eq!(with_backup.await, ["modified a"]);
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_are_a_modification_and_reading_is_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let mut folder = watch(|root| write(&root.join("a"), "1"));
    assert_eq!(folder.after(|root| drop(fs::read(root.join("a")).unwrap())).await, [""; 0]);
    let chmod = |root: &Path| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(folder.after(chmod).await, ["modified a"]);
}

#[cfg(unix)]
#[tokio::test]
async fn names_that_are_not_utf8_are_escaped() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let name = |bytes| OsStr::from_bytes(bytes);
    let mut folder = watch(|_| {});
    let seen = folder.after(|root| {
        write(&root.join(name(b"caf\xe9 5%")), "");
        write(&root.join("100%"), "");
    });
    assert_eq!(seen.await, ["created 100%", "created caf%E9 5%25"]);
    let seen = folder.after(|root| rename(root.join(name(b"caf\xe9 5%")), root.join(name(b"\xff"))));
    assert_eq!(seen.await, ["renamed caf%E9 5%25 -> %FF"]);
}

#[tokio::test]
async fn ignored_files_and_git_are_not_reported_but_dot_files_are() {
    let mut folder = watch(|root| {
        write(&root.join(".gitignore"), "*.log\n/target/\n!keep.log\n");
        fs::create_dir_all(root.join("sub")).unwrap();
        write(&root.join("sub/.ignore"), "private\n");
        fs::create_dir_all(root.join(".git/refs")).unwrap();
        fs::create_dir_all(root.join("target/debug")).unwrap();
    });
    let seen = folder.after(|root| {
        for name in
            ["x.log", "sub/x.log", "sub/private", "target/x", "target/debug/x", ".git/x", ".git/refs/x"]
        {
            write(&root.join(name), "");
        }
        fs::create_dir_all(root.join("nested/.git")).unwrap();
        for name in ["keep.log", ".env", "private", "sub/target", "nested/.git/x", "nested/y"] {
            write(&root.join(name), "");
        }
    });
    let expected =
        ["created .env", "created keep.log", "created nested/y", "created private", "created sub/target"];
    assert_eq!(seen.await, expected);
}

#[tokio::test]
async fn changed_rules_count_at_once_and_report_nothing_but_themselves() {
    let mut folder = watch(|root| {
        fs::create_dir_all(root.join("sub/build")).unwrap();
        write(&root.join("sub/a.log"), "");
        write(&root.join("sub/build/x"), "");
    });
    let seen = folder.after(|root| write(&root.join("sub/.gitignore"), "*.log\nbuild/\n"));
    assert_eq!(seen.await, ["created sub/.gitignore"]);
    let change = |root: &Path| {
        write(&root.join("sub/a.log"), "more");
        write(&root.join("sub/build/x"), "more");
        write(&root.join("a.log"), "");
    };
    assert_eq!(folder.after(change).await, ["created a.log"]);
    let seen = folder.after(|root| write(&root.join("sub/.gitignore"), "other\n"));
    assert_eq!(seen.await, ["modified sub/.gitignore"]);
    let change = |root: &Path| {
        write(&root.join("sub/a.log"), "even more");
        write(&root.join("sub/build/x"), "even more");
    };
    assert_eq!(folder.after(change).await, ["modified sub/a.log", "modified sub/build/x"]);
    let seen = folder.after(|root| {
        write(&root.join("sub/.gitignore"), "build/\n");
        fs::remove_file(root.join("sub/a.log")).unwrap();
        write(&root.join("sub/new"), "");
    });
    assert_eq!(seen.await, ["modified sub/.gitignore", "removed sub/a.log", "created sub/new"]);
}

#[tokio::test]
async fn rules_of_a_parent_count_inside_a_git_repository_only() {
    let in_git = |git: bool| {
        watch(move |root| {
            write(&outside(root, ".gitignore"), "*.log\n");
            if git {
                fs::create_dir(outside(root, ".git")).unwrap();
            }
        })
    };
    let write_log = |root: &Path| write(&root.join("a.log"), "");
    assert_eq!(in_git(true).after(write_log).await, [""; 0]);
    assert_eq!(in_git(false).after(write_log).await, ["created a.log"]);
}

#[tokio::test]
async fn a_directory_moves_in_moves_within_and_moves_out() {
    let mut folder = watch(|root| {
        fs::create_dir_all(outside(root, "new/deep")).unwrap();
        write(&outside(root, "new/x"), "");
        write(&outside(root, "new/deep/y"), "");
    });
    let seen = folder.after(|root| rename(outside(root, "new"), root.join("a"))).await;
    assert_eq!(seen, ["created a/deep/y", "created a/x"]);
    let seen = folder.after(|root| rename(root.join("a"), root.join("b"))).await;
    assert_eq!(seen, ["renamed a/deep/y -> b/deep/y", "renamed a/x -> b/x"]);
    let seen = folder.after(|root| write(&root.join("b/deep/y"), "more")).await;
    assert_eq!(seen, ["modified b/deep/y"]);
    let seen = folder.after(|root| rename(root.join("b"), outside(root, "gone"))).await;
    assert_eq!(seen, ["removed b/deep/y", "removed b/x"]);
    assert_eq!(folder.after(|root| write(&outside(root, "gone/x"), "more")).await, [""; 0]);
}

#[tokio::test]
async fn a_directory_that_is_replaced_by_another_keeps_being_watched() {
    let mut folder = watch(|root| {
        fs::create_dir(root.join("d")).unwrap();
        write(&root.join("d/x"), "");
        fs::create_dir(root.join("e")).unwrap();
        write(&root.join("e/y"), "");
    });
    let seen = folder.after(|root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        rename(root.join("e"), root.join("d"));
    });
    assert_eq!(seen.await, ["removed d/x", "renamed e/y -> d/y"]);
    assert_eq!(folder.after(|root| write(&root.join("d/y"), "more")).await, ["modified d/y"]);
}

#[tokio::test]
async fn a_file_that_a_directory_replaces_is_removed_and_back() {
    let mut folder = watch(|root| write(&root.join("f"), ""));
    let seen = folder.after(|root| {
        fs::remove_file(root.join("f")).unwrap();
        fs::create_dir(root.join("f")).unwrap();
        write(&root.join("f/in"), "");
    });
    assert_eq!(seen.await, ["removed f", "created f/in"]);
    let seen = folder.after(|root| {
        fs::remove_dir_all(root.join("f")).unwrap();
        write(&root.join("f"), "");
    });
    assert_eq!(seen.await, ["created f", "removed f/in"]);
}

#[tokio::test]
async fn half_a_rename_is_a_removal_or_a_creation() {
    let mut folder = watch(|root| {
        write(&root.join(".gitignore"), "*.log\n");
        write(&root.join("a"), "");
        write(&outside(root, "b"), "");
    });
    assert_eq!(folder.after(|root| rename(root.join("a"), root.join("a.log"))).await, ["removed a"]);
    assert_eq!(folder.after(|root| rename(root.join("a.log"), root.join("a"))).await, ["created a"]);
    assert_eq!(folder.after(|root| rename(root.join("a"), outside(root, "a"))).await, ["removed a"]);
    assert_eq!(folder.after(|root| rename(outside(root, "b"), root.join("b"))).await, ["created b"]);
}

#[tokio::test]
async fn files_in_new_directories_are_not_lost() {
    let mut folder = watch(|_| {});
    let seen = folder.after(|root| {
        for n in 0..50 {
            let directory = root.join(format!("{n:02}/a/b/c"));
            fs::create_dir_all(&directory).unwrap();
            write(&directory.join("file"), "");
        }
    });
    let expected: Vec<String> = (0..50).map(|n| format!("created {n:02}/a/b/c/file")).collect();
    let mut seen = seen.await;
    seen.sort_unstable();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_burst_of_files_is_reported_once_each() {
    let mut folder = watch(|_| {});
    let seen = folder.after(|root| (0..500).for_each(|n| write(&root.join(format!("{n:03}")), "content")));
    let mut seen = seen.await;
    seen.sort_unstable();
    assert_eq!(seen, (0..500).map(|n| format!("created {n:03}")).collect::<Vec<_>>());
    let mut seen = folder
        .after(|root| (0..500).for_each(|n| fs::remove_file(root.join(format!("{n:03}"))).unwrap()))
        .await;
    seen.sort_unstable();
    assert_eq!(seen, (0..500).map(|n| format!("removed {n:03}")).collect::<Vec<_>>());
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_files_of_their_own_and_are_not_followed() {
    use std::os::unix::fs::symlink;
    let mut folder = watch(|root| {
        fs::create_dir(outside(root, "elsewhere")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
    });
    let seen = folder.after(|root| {
        symlink(outside(root, "elsewhere"), root.join("link")).unwrap();
        symlink(root, root.join("d/loop")).unwrap();
        symlink("missing", root.join("dangling")).unwrap();
        write(&outside(root, "elsewhere/x"), "");
    });
    assert_eq!(seen.await, ["created d/loop", "created dangling", "created link"]);
}

#[tokio::test]
async fn the_data_directory_is_not_watched() {
    let mut folder =
        watch_without(|root| fs::create_dir_all(root.join("state/data")).unwrap(), &["state/data"]);
    let seen = folder.after(|root| {
        write(&root.join("state/data/a.sqlite"), "");
        fs::create_dir(root.join("state/data/deep")).unwrap();
        write(&root.join("state/data.txt"), "");
    });
    assert_eq!(seen.await, ["created state/data.txt"]);
}

#[tokio::test]
async fn a_repository_in_which_only_git_works_is_idle() {
    let git = |root: &Path, arguments: &[&str]| {
        let identity =
            ["-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "init.defaultBranch=main"];
        let output = Command::new("git").current_dir(root).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let mut folder = watch(|root| {
        write(&root.join("a"), "1");
        git(root, &["init", "--quiet"]);
    });
    let seen = folder.after(|root| {
        git(root, &["add", "a"]);
        git(root, &["commit", "--quiet", "--message", "first"]);
        git(root, &["status"]);
        git(root, &["gc", "--quiet"]);
    });
    assert_eq!(seen.await, [""; 0]);
}

#[tokio::test]
async fn a_slow_receiver_loses_nothing() {
    let mut folder = watch(|_| {});
    // More than the channel holds, in as many windows as the time between the writes makes.
    for n in 0..3_000 {
        write(&folder.root.join(format!("{n:04}")), "");
    }
    let mut seen = folder.after(|_| {}).await;
    seen.sort_unstable();
    assert_eq!(seen, (0..3_000).map(|n| format!("created {n:04}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_folder_that_is_deleted_ends_the_watcher_after_its_files() {
    let mut folder = watch(|root| write(&root.join("a"), ""));
    fs::remove_dir_all(&folder.root).unwrap();
    let changes = folder.batch().await.unwrap();
    assert_eq!(changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["removed a"]);
    let error = folder.batch().await.unwrap_err();
    assert!(matches!(&error, WatchError::RootGone(path) if *path == folder.root));
    assert!(folder.changes.recv().await.is_none());
}

#[tokio::test]
async fn a_folder_that_is_replaced_is_watched_on() {
    let mut folder = watch(|root| {
        write(&root.join("a"), "");
        fs::create_dir(outside(root, "other")).unwrap();
        write(&outside(root, "other/b"), "");
    });
    let seen = folder.after(|root| {
        fs::remove_dir_all(root).unwrap();
        rename(outside(root, "other"), root);
    });
    assert_eq!(seen.await, ["removed a", "created b"]);
    assert_eq!(folder.after(|root| write(&root.join("b"), "more")).await, ["modified b"]);
}

#[tokio::test]
async fn a_dropped_watcher_ends() {
    let mut folder = watch(|_| {});
    drop(folder.watcher);
    let end = tokio::time::timeout(TIMEOUT, folder.changes.recv()).await.unwrap();
    assert!(end.is_none());
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = Watcher::start(directory.path().join("missing"), Vec::new()).unwrap_err();
    assert!(matches!(error, WatchError::RootGone(_)));
    assert_eq!(
        error.to_string(),
        format!("the watched folder is gone: {}/missing", directory.path().display())
    );
}
