//! What the system said since the last look: paths, not changes. Bounded, because losing a path here only means to
//! look at everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long the watcher collects before it looks. Longer times merge more changes into one and show them later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// A window ends when nothing happened for this long.
    pub quiet: Duration,
    /// A window ends at the latest after this long, so that a file that is written all the time is still reported.
    pub longest: Duration,
}

impl Default for Timing {
    /// 50 ms of quiet, which no editor's save has in its middle, and at most 250 ms, which still feels live.
    fn default() -> Self {
        Self { quiet: Duration::from_millis(50), longest: Duration::from_millis(250) }
    }
}

/// More paths than this are "everything": a rescan is then about as cheap, and memory stays bounded.
const MAX_PATHS: usize = 16_384;
/// Renames beyond these are still found by inode, unless the file was also written to.
const MAX_MOVES: usize = 1_024;

/// The paths to look at, and when.
#[derive(Debug, Default)]
pub(super) struct Pending {
    timing: Timing,
    paths: BTreeMap<PathBuf, Times>,
    moves: Vec<(PathBuf, PathBuf)>,
    everything: bool,
    window: Option<Times>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    first: Instant,
    last: Instant,
}

/// What one look is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// The paths that events named, relative to the folder.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Renames within the folder, oldest first.
    pub(super) moves: Vec<(PathBuf, PathBuf)>,
    /// Events were lost, or the folder itself changed: look at everything.
    pub(super) everything: bool,
}

impl Pending {
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, ..Self::default() }
    }

    /// Something happened to `path`. The empty path is the folder itself.
    pub(super) fn touch(&mut self, path: &Path, now: Instant) {
        self.extend_window(now);
        if self.everything {
            return;
        }
        if path.as_os_str().is_empty() || self.paths.len() >= MAX_PATHS {
            return self.lose_track(now);
        }
        match self.paths.get_mut(path) {
            Some(times) => times.last = now,
            None => drop(self.paths.insert(path.to_owned(), Times { first: now, last: now })),
        }
    }

    /// `from` is called `to` now; both must have been [touched](Self::touch).
    pub(super) fn moved(&mut self, from: &Path, to: &Path) {
        if !self.everything && self.moves.len() < MAX_MOVES {
            self.moves.push((from.to_owned(), to.to_owned()));
        }
    }

    /// Events were lost: only a look at everything finds what happened.
    pub(super) fn lose_track(&mut self, now: Instant) {
        self.extend_window(now);
        self.everything = true;
        self.paths.clear();
        self.moves.clear();
    }

    fn extend_window(&mut self, now: Instant) {
        self.window.get_or_insert(Times { first: now, last: now }).last = now;
    }

    /// When the next look is due; none when nothing happened.
    pub(super) fn due(&self) -> Option<Instant> {
        self.window.map(|window| (window.last + self.timing.quiet).min(window.first + self.timing.longest))
    }

    /// Takes what is to be looked at. In the middle of a burst, paths that are being written right now are left for
    /// the next window, so that each file of the burst is reported once and complete.
    pub(super) fn take(&mut self, now: Instant) -> Taken {
        let Some(window) = self.window else { return Taken::default() };
        let Timing { quiet, longest } = self.timing;
        let everything = self.everything;
        if everything || now >= window.last + quiet {
            let all = std::mem::replace(self, Self::new(self.timing));
            return Taken { paths: all.paths.into_keys().collect(), moves: all.moves, everything };
        }
        let busy = |times: &Times| now < times.last + quiet && now < times.first + longest;
        let mut left: BTreeSet<PathBuf> =
            self.paths.iter().filter(|(_, times)| busy(times)).map(|(path, _)| path.clone()).collect();
        // Both ends of a rename belong into one look: apart they are a removal and a creation.
        for (from, to) in self.moves.iter().rev() {
            if left.contains(from) || left.contains(to) {
                left.extend([from.clone(), to.clone()]);
            }
        }
        let (left_moves, moves) =
            std::mem::take(&mut self.moves).into_iter().partition(|(from, _)| left.contains(from));
        let (left_paths, paths): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.paths).into_iter().partition(|(path, _)| left.contains(path));
        self.window = (!left_paths.is_empty()).then_some(Times { first: now, last: window.last });
        (self.paths, self.moves) = (left_paths, left_moves);
        Taken { paths: paths.into_keys().collect(), moves, everything }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clock(Instant);

    impl Clock {
        fn at(&self, ms: u64) -> Instant {
            self.0 + Duration::from_millis(ms)
        }
    }

    fn touched(times: &[(&str, u64)]) -> (Pending, Clock) {
        let (mut pending, clock) = (Pending::default(), Clock(Instant::now()));
        for (path, ms) in times {
            pending.touch(Path::new(path), clock.at(*ms));
        }
        (pending, clock)
    }

    fn names(taken: &Taken) -> Vec<&str> {
        taken.paths.iter().map(|path| path.to_str().unwrap()).collect()
    }

    #[test]
    fn nothing_is_due_when_nothing_happened() {
        let (mut pending, clock) = touched(&[]);
        assert_eq!(pending.due(), None);
        assert_eq!(pending.take(clock.at(0)), Taken::default());
    }

    #[test]
    fn a_window_ends_with_quiet() {
        let (mut pending, clock) = touched(&[("a", 0), ("b", 30), ("a", 40)]);
        assert_eq!(pending.due(), Some(clock.at(90)));
        assert_eq!(names(&pending.take(clock.at(90))), ["a", "b"]);
        assert_eq!(pending.due(), None);
    }

    #[test]
    fn a_window_without_quiet_ends_after_the_longest_time() {
        let times: Vec<(&str, u64)> = (0..30).map(|step| ("log", step * 10)).collect();
        let (mut pending, clock) = touched(&times);
        assert_eq!(pending.due(), Some(clock.at(250)));
        assert_eq!(names(&pending.take(clock.at(291))), ["log"]);
        assert_eq!(pending.due(), None);
    }

    #[test]
    fn in_a_burst_the_paths_that_are_being_written_are_left_for_the_next_window() {
        let (mut pending, clock) = touched(&[("a", 0), ("b", 100), ("c", 240)]);
        assert_eq!(names(&pending.take(clock.at(250))), ["a", "b"]);
        assert_eq!(pending.due(), Some(clock.at(290)));
        assert_eq!(names(&pending.take(clock.at(290))), ["c"]);
    }

    #[test]
    fn both_ends_of_a_rename_stay_together() {
        let (mut pending, clock) = touched(&[("z", 0), ("from", 0), ("from", 240), ("to", 240)]);
        pending.moved(Path::new("from"), Path::new("to"));
        let early = pending.take(clock.at(250));
        assert_eq!(names(&early), ["z"]);
        assert_eq!(early.moves, []);
        let late = pending.take(clock.at(290));
        assert_eq!(names(&late), ["from", "to"]);
        assert_eq!(late.moves, [(PathBuf::from("from"), PathBuf::from("to"))]);
    }

    #[test]
    fn too_many_paths_and_the_folder_itself_are_everything() {
        let (mut pending, clock) = touched(&[("a", 0), ("", 1), ("b", 2)]);
        assert_eq!(pending.due(), Some(clock.at(52)));
        assert_eq!(pending.take(clock.at(52)), Taken { everything: true, ..Taken::default() });

        for n in 0..=MAX_PATHS {
            pending.touch(Path::new(&n.to_string()), clock.at(100));
        }
        assert!(pending.take(clock.at(100)).everything);
        assert_eq!(pending.due(), None);
    }

    #[test]
    fn renames_are_bounded() {
        let (mut pending, clock) = touched(&[("a", 0)]);
        (0..2 * MAX_MOVES).for_each(|_| pending.moved(Path::new("a"), Path::new("b")));
        assert_eq!(pending.take(clock.at(50)).moves.len(), MAX_MOVES);
    }
}
