//! What a data directory remembers of its namespaces: which migrations were applied, and which key each name has.
//!
//! The key is what a namespace's ids are derived with, the folder that its files lie in, and its name in the index of
//! alarms. A rename gives the key another name and touches nothing else; a deletion retires the key for good, so that
//! whatever is created later, under whatever name, finds nothing of what was there.
//!
//! One file, replaced as a whole. All new migrations are applied by one replacement, which also says what is to be
//! removed; only then is it removed, and a start that finds such a note removes the rest. A directory that is used
//! without migrations has no such file: each name is its own key.

use super::migration::{Applied, Change, check_name};
use crate::{Error, ErrorKind, sqlite::AlarmIndex};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// A dot is in no namespace's name.
const FILE: &str = "namespaces.json";
/// The file before it replaces that one.
const NEXT: &str = "namespaces.json.next";
/// Of this version.
const FORMAT: u32 = 1;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    /// Those that were applied, the first one first.
    migrations: Vec<Applied>,
    /// Keys by name.
    namespaces: BTreeMap<String, String>,
    /// Keys of namespaces that were deleted: never used again.
    retired: BTreeSet<String>,
    /// Those of them whose data is still to be removed.
    removing: BTreeSet<String>,
}

impl Manifest {
    /// That of a directory; an empty one when it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`] with the path when it cannot be read, and [`ErrorKind::Invalid`] when it is of a later
    /// version.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let path = dir.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::empty()),
            Err(error) => return Err(fault(&path, error)),
        };
        // First: what else a later version has is not for us to understand.
        let Version { format } = serde_json::from_slice(&text).map_err(|error| fault(&path, error))?;
        if format > FORMAT {
            let message = format!("{}: a newer version of do-core wrote it", path.display());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| fault(&path, error))?;
        manifest
            .check()
            .map_err(|why| Error::new(ErrorKind::Platform, format!("{}: {why}", path.display())))?;
        Ok(manifest)
    }

    /// Folders are removed by keys: nothing but our own may be reached, and nothing of a namespace that is there.
    fn check(&self) -> Result<(), String> {
        let mut keys = self.namespaces.values().chain(&self.retired).chain(&self.removing);
        if let Some(key) = keys.find(|key| !is_key(key)) {
            return Err(format!("{key:?} is no key of a namespace"));
        }
        let mut once = BTreeSet::new();
        let mut used = self.namespaces.values().chain(&self.retired);
        if let Some(key) = used.find(|key| !once.insert(key.to_ascii_lowercase())) {
            return Err(format!("{key:?} is the key of two namespaces"));
        }
        match self.removing.iter().find(|key| !self.retired.contains(*key)) {
            Some(key) => Err(format!("{key:?} is to be removed, and no key of a namespace that was deleted")),
            None => Ok(()),
        }
    }

    /// That of a new directory.
    pub(crate) fn empty() -> Self {
        Self {
            format: FORMAT,
            migrations: Vec::new(),
            namespaces: BTreeMap::new(),
            retired: BTreeSet::new(),
            removing: BTreeSet::new(),
        }
    }

    /// What it is after the migrations of the list that were not applied yet. Nothing is written.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] as [`Builder::migrations`](super::Builder::migrations) says.
    pub(super) fn after(&self, list: &[Applied], dir: &Path) -> Result<Self, Error> {
        let mut tags = BTreeSet::new();
        for migration in list {
            migration.check()?;
            if !tags.insert(migration.tag()) {
                return invalid(format!("two migrations have the tag {:?}", migration.tag()));
            }
        }
        let new = self.not_applied(list)?;
        let mut after = self.clone();
        for migration in new {
            for change in migration.changes() {
                after.change(change, dir).map_err(|why| {
                    let message = format!("the migration {:?} {change}, but {why}", migration.tag());
                    Error::new(ErrorKind::Invalid, message)
                })?;
            }
            after.migrations.push(migration.clone());
        }
        Ok(after)
    }

    /// The list must begin with what was applied: otherwise it is that of an older program, or of another one.
    fn not_applied<'a>(&self, list: &'a [Applied]) -> Result<&'a [Applied], Error> {
        for (number, applied) in self.migrations.iter().enumerate() {
            let tag = applied.tag();
            match list.get(number) {
                Some(same) if same == applied => {}
                Some(same) if same.tag() == tag => {
                    return invalid(format!(
                        "the migration {tag:?} was applied when it was another: it {}",
                        changes(applied)
                    ));
                }
                Some(other) => {
                    return invalid(format!(
                        "the data directory has applied the migration {tag:?} where the list has {:?}: what was applied \
                         stays at the beginning of the list, as it was",
                        other.tag()
                    ));
                }
                None => {
                    return invalid(format!(
                        "the data directory has applied the migration {tag:?}, which the list does not have: was it \
                         used by a newer program?"
                    ));
                }
            }
        }
        Ok(list.get(self.migrations.len()..).unwrap_or_default())
    }

    fn change(&mut self, change: &Change, dir: &Path) -> Result<(), String> {
        let there_is = |name: &str| format!("there is a namespace {name}");
        let there_is_no = |name: &str| format!("there is no namespace {name}");
        match change {
            Change::Created(name) if self.namespaces.contains_key(name) => return Err(there_is(name)),
            Change::Created(name) => {
                let key = self.new_key(name);
                self.namespaces.insert(name.clone(), key);
            }
            Change::Renamed { from, to } => {
                if self.namespaces.contains_key(to) {
                    return Err(there_is(to));
                }
                if !self.is_used(to) && dir.join(to).exists() {
                    return Err(format!("the directory has objects of {to} from a time without migrations"));
                }
                let key = self.namespaces.remove(from).ok_or_else(|| there_is_no(from))?;
                self.namespaces.insert(to.clone(), key);
            }
            Change::Deleted(name) => {
                let key = self.namespaces.remove(name).ok_or_else(|| there_is_no(name))?;
                self.retired.insert(key.clone());
                self.removing.insert(key);
            }
        }
        Ok(())
    }

    /// The name, unless that is the key of a namespace that has another name now or was deleted. With a dot, which no
    /// name has, so that it is never the key of a namespace without migrations.
    fn new_key(&self, name: &str) -> String {
        let mut numbered = (2_u64..).map(|number| format!("{name}.{number}"));
        let all = std::iter::once(name.to_owned()).chain(&mut numbered);
        all.into_iter().find(|key| !self.is_used(key)).unwrap_or_else(|| name.to_owned()) // never: there are 2^64
    }

    /// Folders are named by keys, and not every file system tells cases apart.
    fn is_used(&self, key: &str) -> bool {
        self.namespaces.values().chain(&self.retired).any(|used| used.eq_ignore_ascii_case(key))
    }

    /// The key of a namespace that is registered.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when migrations are used, and none leaves a namespace of that name.
    pub(super) fn key(&self, name: &str) -> Result<String, Error> {
        self.namespaces.get(name).cloned().ok_or_else(|| {
            let message = format!(
                "the namespace {name:?} is registered, but no migration leaves one of that name: create it in a new \
                 migration"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }

    /// For the test kit: what is to be removed, which it does in no time.
    #[cfg(feature = "testing")]
    pub(super) fn take_removing(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.removing)
    }

    /// Makes the directory follow, whichever step an earlier start of this got to.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`]. The next start goes on from there.
    pub(super) fn carry_out(mut self, before: &Self, dir: &Path, index: &AlarmIndex) -> Result<(), Error> {
        if self != *before {
            self.write(dir)?; // from here on the migrations are applied
            for migration in self.migrations.iter().skip(before.migrations.len()) {
                tracing::info!(
                    tag = migration.tag(),
                    changes = changes(migration),
                    "a migration was applied"
                );
            }
        }
        if self.removing.is_empty() {
            return Ok(());
        }
        for key in &self.removing {
            index.forget(key)?;
            remove(dir, key).map_err(|error| fault(&dir.join(key), error))?;
            tracing::info!(folder = key, "the objects of a deleted namespace were removed");
        }
        self.removing.clear();
        self.write(dir)
    }

    /// Replaces the file. When it returns, the new one is on the disk.
    fn write(&self, dir: &Path) -> Result<(), Error> {
        let write = || {
            let mut text = serde_json::to_string_pretty(self)?;
            text.push('\n');
            let next = dir.join(NEXT);
            let mut file = File::create(&next)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&next, dir.join(FILE))?;
            File::open(dir)?.sync_all()
        };
        write().map_err(|error| fault(&dir.join(FILE), error))
    }
}

fn is_key(key: &str) -> bool {
    let (name, number) = key.split_once('.').unwrap_or((key, "2"));
    check_name(name).is_ok() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// Removes the files of a namespace for good: what came back after a power failure would not be removed again.
fn remove(dir: &Path, key: &str) -> io::Result<()> {
    match fs::remove_dir_all(dir.join(key)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::open(dir)?.sync_all(),
    }
}

fn changes(migration: &Applied) -> String {
    let changes: Vec<_> = migration.changes().iter().map(ToString::to_string).collect();
    if changes.is_empty() { "changed nothing".to_owned() } else { changes.join(", ") }
}

fn invalid<T>(message: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Invalid, message))
}

fn fault(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Platform, format!("{}: {error}", path.display())).with_source(error)
}
