//! Where the system's events meet the watcher's thread.

use super::{
    folder::is_git,
    pending::{Pending, Taken, Timing},
};
use notify::{
    Event, EventKind,
    event::{MetadataKind, ModifyKind, RenameMode},
};
use std::{
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The pending paths and the wish to stop.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    pending: Pending,
    stopped: bool,
}

impl Shared {
    pub(super) fn new(timing: Timing) -> Self {
        let state = State { pending: Pending::new(timing), stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid after each statement that holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until a look is due; none when the watcher is to stop.
    pub(super) fn wait(&self) -> Option<Taken> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let now = Instant::now();
            state = match state.pending.due() {
                Some(due) if due <= now => return Some(state.pending.take(now)),
                Some(due) => self.wait_on(state, due - now),
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Sleeps for `time` unless the watcher is to stop before, and says whether it is to go on.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut state = self.lock();
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            if state.stopped || rest.is_zero() {
                return !state.stopped;
            }
            state = self.wait_on(state, rest);
        }
    }

    fn wait_on<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes one event of the system for the folder `root`.
    pub(super) fn take_event(&self, root: &Path, event: Result<Event, notify::Error>) {
        let now = Instant::now();
        match event {
            Ok(event) if event.need_rescan() => {
                tracing::warn!("the system lost file events: looking at the whole folder again");
                self.lock().pending.lose_track(now);
            }
            Ok(event) if is_noise(event.kind) => return,
            Ok(event) => self.take_paths(root, &event, now),
            Err(error) => {
                tracing::warn!("file events failed, looking at the whole folder again: {error}");
                self.lock().pending.lose_track(now);
            }
        }
        self.changed.notify_all();
    }

    fn take_paths(&self, root: &Path, event: &Event, now: Instant) {
        let relative =
            |path: &'_ Path| path.strip_prefix(root).ok().filter(|path| !is_git(path)).map(Path::to_owned);
        let paths: Vec<_> = event.paths.iter().filter_map(|path| relative(path)).collect();
        if paths.is_empty() {
            return;
        }
        let mut state = self.lock();
        for path in &paths {
            state.pending.touch(path, now);
        }
        if let (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) =
            (event.kind, paths.as_slice())
        {
            state.pending.moved(from, to);
        }
    }
}

/// Whether the event changes nothing that is reported. Reading is the bulk of all events, our own included.
fn is_noise(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(MetadataKind::AccessTime)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{AccessKind, AccessMode, CreateKind, DataChange, Flag};
    use std::{collections::BTreeSet, path::PathBuf};

    fn take(events: Vec<Result<Event, notify::Error>>) -> Taken {
        let shared = Shared::new(Timing::default());
        for event in events {
            shared.take_event(Path::new("/root"), event);
        }
        let late = Instant::now() + Duration::from_secs(1);
        shared.lock().pending.take(late)
    }

    fn event(kind: EventKind, paths: &[&str]) -> Result<Event, notify::Error> {
        Ok(paths.iter().fold(Event::new(kind), |event, path| event.add_path(PathBuf::from(path))))
    }

    #[test]
    fn paths_are_relative_and_foreign_git_and_read_ones_are_left_out() {
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let taken = take(vec![
            event(written, &["/root/a/b"]),
            event(EventKind::Create(CreateKind::File), &["/root/.gitignore"]),
            event(written, &["/root/.git/index"]),
            event(written, &["/root/sub/.git/index"]),
            event(written, &["/rootless"]),
            event(EventKind::Access(AccessKind::Close(AccessMode::Write)), &["/root/read"]),
        ]);
        assert_eq!(taken.paths, BTreeSet::from([PathBuf::from("a/b"), PathBuf::from(".gitignore")]));
        assert!(!taken.everything);
    }

    #[test]
    fn a_rename_within_the_folder_is_kept_as_one() {
        let both = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        let taken =
            take(vec![event(both, &["/root/a", "/root/b"]), event(both, &["/root/.git/x", "/root/c"])]);
        assert_eq!(taken.moves, [(PathBuf::from("a"), PathBuf::from("b"))]);
        assert_eq!(taken.paths.len(), 3);
    }

    #[test]
    fn lost_events_errors_and_the_folder_itself_are_everything() {
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        assert!(take(vec![Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan))]).everything);
        assert!(take(vec![Err(notify::Error::generic("broken"))]).everything);
        assert!(take(vec![event(written, &["/root"])]).everything);
    }

    #[test]
    fn a_stopped_watcher_waits_for_nothing() {
        let shared = Shared::new(Timing::default());
        shared.stop();
        assert_eq!(shared.wait(), None);
        assert!(!shared.sleep(Duration::from_secs(3600)));
    }
}
