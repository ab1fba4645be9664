//! The migrations of a `wrangler.toml`: which key each class's objects lie under, and applying them once to a folder of
//! data.
//!
//! workerd derives the ids of a class from its key and keeps its files and alarms in a folder of that name. A rename
//! leaves the key alone. The key of a class that was deleted, or has another name now, is never given again.

use crate::problem::{Doing, Outcome, Problem};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What a folder of data remembers of a Worker; others may keep their data there as well. Neither a Worker's name nor
/// that of a class has a dot, so that no key is called so.
fn file_of(worker: &str) -> String {
    format!("{worker}.migrations.json")
}

/// One entry of `[[migrations]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Migration {
    tag: String,
    #[serde(default)]
    new_sqlite_classes: Vec<String>,
    /// Without SQL, which every class of this workspace wants.
    #[serde(default, skip_serializing)]
    new_classes: Vec<String>,
    #[serde(default)]
    renamed_classes: Vec<Renamed>,
    #[serde(default)]
    deleted_classes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Renamed {
    from: String,
    to: String,
}

/// What migrations leave when they are done one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    /// Their keys by their names.
    pub(crate) keys: BTreeMap<String, String>,
    /// The keys of those that were deleted.
    retired: BTreeSet<String>,
}

impl Classes {
    /// Of a Worker with this name.
    ///
    /// # Errors
    /// A migration cannot be done after those before it.
    pub(crate) fn of(worker: &str, migrations: &[Migration]) -> Outcome<Self> {
        let mut classes = Self::default();
        let mut tags = BTreeSet::new();
        for migration in migrations {
            let Migration { tag, .. } = migration;
            if tag.is_empty() || !tags.insert(tag) {
                return Err(Problem::new(format!("the tag {tag:?} is empty, or two migrations have it")));
            }
            let why = |what: String| Problem::new(format!("the migration {tag:?} {what}"));
            classes.change(worker, migration).map_err(why)?;
        }
        Ok(classes)
    }

    /// In the order in which wrangler does it: what one migration deletes, it may make again.
    fn change(&mut self, worker: &str, migration: &Migration) -> Result<(), String> {
        for name in &migration.deleted_classes {
            let key =
                self.keys.remove(name).ok_or_else(|| format!("deletes {name:?}, which does not exist"))?;
            self.retired.insert(key);
        }
        for Renamed { from, to } in &migration.renamed_classes {
            let doing = format!("renames {from:?} to {to:?}");
            is_class(to)?;
            if self.keys.contains_key(to) {
                return Err(format!("{doing}, which exists"));
            }
            let key = self.keys.remove(from).ok_or_else(|| format!("{doing}, and there is no {from:?}"))?;
            self.keys.insert(to.clone(), key);
        }
        if let Some(name) = migration.new_classes.first() {
            return Err(format!(
                "makes {name:?} without SQL, which objects here need: use new_sqlite_classes"
            ));
        }
        for name in &migration.new_sqlite_classes {
            is_class(name)?;
            if self.keys.contains_key(name) {
                return Err(format!("makes {name:?}, which exists"));
            }
            let key = self.new_key(worker, name);
            self.keys.insert(name.clone(), key);
        }
        Ok(())
    }

    /// The key that wrangler uses as well, so that its files can be served here and ours there; with a number behind it
    /// when another class has or had it.
    fn new_key(&self, worker: &str, name: &str) -> String {
        let first = format!("{worker}-{name}");
        let mut key = first.clone();
        let mut number = 2_u64;
        while self.retired.contains(&key) || self.keys.values().any(|used| *used == key) {
            key = format!("{first}.{number}");
            number += 1;
        }
        key
    }
}

fn is_class(name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if !name.is_empty() && name.chars().all(legal) {
        return Ok(());
    }
    Err(format!("has {name:?}, which is no name of a class"))
}

/// The file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Applied {
    migrations: Vec<Migration>,
    /// Folders of deleted classes that are still to be removed.
    removing: BTreeSet<String>,
}

/// Applies to a folder what was not applied yet: the data of deleted classes is removed. The caller holds the folder's
/// lock.
///
/// # Errors
/// The folder has applied what these migrations do not begin with, and nothing was changed; or a file cannot be
/// written, and the next call goes on from there.
pub(crate) fn apply(data: &Path, worker: &str, migrations: &[Migration]) -> Outcome {
    let path = data.join(file_of(worker));
    let before: Applied = match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).doing(path.display())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Applied::default(),
        Err(error) => return Err(error).doing(path.display()),
    };
    if let Some(number) =
        (0..before.migrations.len()).find(|n| before.migrations.get(*n) != migrations.get(*n))
    {
        let tag = before.migrations.get(number).map_or("", |applied| &applied.tag);
        return Err(Problem::new(format!(
            "{}: the migration {tag:?} was applied, and wrangler.toml has {} in its place: what was applied stays as it is",
            data.display(),
            migrations.get(number).map_or("nothing".to_owned(), |m| format!("another {:?}", m.tag)),
        )));
    }
    let kept = Classes::of(worker, &before.migrations)?.retired;
    let retired = Classes::of(worker, migrations)?.retired;
    // Nothing but what is known to be deleted is removed, whatever the file says.
    let removing = retired.iter().filter(|key| !kept.contains(*key) || before.removing.contains(*key));
    let removing: BTreeSet<_> = removing.cloned().collect();
    if before.migrations.len() == migrations.len() && removing.is_empty() {
        return Ok(());
    }
    let mut applied = Applied { migrations: migrations.to_vec(), removing };
    applied.write(data, worker).doing(path.display())?; // from here on they are applied
    for key in std::mem::take(&mut applied.removing) {
        let folder = data.join(&key);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).doing(folder.display());
            }
            _ => {}
        }
    }
    File::open(data).and_then(|folder| folder.sync_all()).doing(data.display())?;
    applied.write(data, worker).doing(path.display())
}

impl Applied {
    /// Replaces the file. When it returns, the new one is on the disk.
    fn write(&self, data: &Path, worker: &str) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        let path = data.join(file_of(worker));
        let next = path.with_extension("json.next");
        let mut file = File::create(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, path)?;
        File::open(data)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Migration> {
        #[derive(Deserialize)]
        struct File {
            migrations: Vec<Migration>,
        }
        toml::from_str::<File>(text).unwrap().migrations
    }

    /// Each migration is a line, the first one `0`.
    fn migrations(lines: &[&str]) -> Vec<Migration> {
        let entries =
            lines.iter().enumerate().map(|(n, line)| format!("[[migrations]]\ntag = \"{n}\"\n{line}\n"));
        read(&entries.collect::<String>())
    }

    fn keys(lines: &[&str]) -> Vec<(String, String)> {
        Classes::of("w", &migrations(lines)).unwrap().keys.into_iter().collect()
    }

    fn fault(lines: &[&str]) -> String {
        Classes::of("w", &migrations(lines)).unwrap_err().to_string()
    }

    const MAKE: &str = "new_sqlite_classes = [\"A\", \"B\"]";

    #[test]
    fn a_key_is_stable_over_renames_and_never_given_again() {
        let pair = |name: &str, key: &str| (name.to_owned(), key.to_owned());
        assert_eq!(keys(&[MAKE]), [pair("A", "w-A"), pair("B", "w-B")]);
        let rename = "renamed_classes = [{ from = \"A\", to = \"C\" }]";
        assert_eq!(keys(&[MAKE, rename]), [pair("B", "w-B"), pair("C", "w-A")]);
        let again = format!("{rename}\nnew_sqlite_classes = [\"A\"]");
        assert_eq!(keys(&[MAKE, &again]), [pair("A", "w-A.2"), pair("B", "w-B"), pair("C", "w-A")]);
        let delete = "deleted_classes = [\"A\"]";
        assert_eq!(keys(&[MAKE, delete]), [pair("B", "w-B")]);
        let anew = "deleted_classes = [\"A\"]\nnew_sqlite_classes = [\"A\"]";
        assert_eq!(keys(&[MAKE, anew]), [pair("A", "w-A.2"), pair("B", "w-B")]);
        assert_eq!(keys(&[MAKE, anew, anew])[0], pair("A", "w-A.3"));
    }

    #[test]
    fn what_cannot_be_done_is_an_error() {
        assert_eq!(
            fault(&["deleted_classes = [\"A\"]"]),
            "the migration \"0\" deletes \"A\", which does not exist"
        );
        assert_eq!(fault(&[MAKE, MAKE]), "the migration \"1\" makes \"A\", which exists");
        let rename =
            |from: &str, to: &str| format!("renamed_classes = [{{ from = \"{from}\", to = \"{to}\" }}]");
        assert!(fault(&[MAKE, &rename("A", "B")]).ends_with("renames \"A\" to \"B\", which exists"));
        assert!(fault(&[MAKE, &rename("X", "Y")]).ends_with("renames \"X\" to \"Y\", and there is no \"X\""));
        assert!(fault(&[MAKE, &rename("A", "a b")]).ends_with("has \"a b\", which is no name of a class"));
        assert!(
            fault(&["new_sqlite_classes = [\"a-b\"]"]).ends_with("has \"a-b\", which is no name of a class")
        );
        assert!(fault(&["new_classes = [\"A\"]"]).ends_with("use new_sqlite_classes"));
        let twice = read(&"[[migrations]]\ntag = \"1\"\n".repeat(2));
        assert!(Classes::of("w", &twice).unwrap_err().to_string().contains("two migrations have it"));
    }

    /// A folder with an object of each class.
    fn folder(keys: &[&str]) -> tempfile::TempDir {
        let data = tempfile::tempdir().unwrap();
        for key in keys {
            fs::create_dir(data.path().join(key)).unwrap();
            fs::write(data.path().join(key).join("x.sqlite"), key).unwrap();
        }
        data
    }

    fn folders(data: &Path) -> Vec<String> {
        let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap());
        let folders = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_data_of_deleted_classes_is_removed_once() {
        let data = folder(&["w-A", "w-B"]);
        let data = data.path();
        let all = migrations(&[MAKE, "deleted_classes = [\"A\"]", "new_sqlite_classes = [\"A\"]"]);
        apply(data, "w", &all[..1]).unwrap();
        assert_eq!(folders(data), ["w-A", "w-B"]);
        apply(data, "w", &all).unwrap();
        assert_eq!(folders(data), ["w-B"]);
        fs::create_dir(data.join("w-A")).unwrap();
        apply(data, "w", &all).unwrap();
        assert_eq!(folders(data), ["w-A", "w-B"], "what somebody put there afterwards is not ours");
    }

    #[test]
    fn a_removal_that_was_cut_off_is_finished() {
        let data = folder(&["w-A", "w-B"]);
        let data = data.path();
        let all = migrations(&[MAKE, "deleted_classes = [\"A\"]"]);
        let left = Applied { migrations: all.clone(), removing: ["w-A", ".."].map(str::to_owned).into() };
        left.write(data, "w").unwrap();
        fs::write(data.join("w.migrations.json.next"), "{").unwrap();
        apply(data, "w", &all).unwrap();
        assert_eq!(folders(data), ["w-B"]);
        let left: Applied = serde_json::from_slice(&fs::read(data.join(file_of("w"))).unwrap()).unwrap();
        assert_eq!(left, Applied { migrations: all, removing: BTreeSet::new() });
    }

    #[test]
    fn another_history_is_refused_and_changes_nothing() {
        let data = folder(&["w-A", "w-B"]);
        let data = data.path();
        let all = migrations(&[MAKE, "renamed_classes = [{ from = \"A\", to = \"C\" }]"]);
        apply(data, "w", &all).unwrap();
        let text = fs::read(data.join(file_of("w"))).unwrap();
        for (other, expected) in [
            (
                migrations(&[MAKE]),
                "the migration \"1\" was applied, and wrangler.toml has nothing in its place",
            ),
            (
                migrations(&[MAKE, "deleted_classes = [\"A\"]"]),
                "wrangler.toml has another \"1\" in its place",
            ),
            (vec![all[1].clone()], "the migration \"0\" was applied, and wrangler.toml has another \"1\""),
        ] {
            let problem = apply(data, "w", &other).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        assert_eq!(fs::read(data.join(file_of("w"))).unwrap(), text);
        assert_eq!(folders(data), ["w-A", "w-B"]);
    }

    #[test]
    fn a_file_that_is_damaged_is_named() {
        let data = folder(&["w-A"]);
        fs::write(data.path().join(file_of("w")), "{").unwrap();
        let problem = apply(data.path(), "w", &[]).unwrap_err().to_string();
        assert!(problem.contains("w.migrations.json: EOF"), "{problem}");
        apply(data.path(), "other", &migrations(&[MAKE])).unwrap();
    }
}
