//! A crate's `wrangler.toml`, as far as one workerd can serve what it describes. A setting that it cannot serve is an
//! error and not left out: the Worker would find a binding missing only when it uses it.

use super::migrations::{Classes, Migration};
use crate::problem::{Doing, Outcome, Problem};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The file that every Worker's crate has.
const FILE: &str = "wrangler.toml";
/// The one of a second deployment.
const SECOND: &str = "wrangler.second.toml";

/// Settings that say how to build, deploy or watch, and change nothing of what the Worker sees.
const NOT_OURS: [&str; 18] = [
    "$schema",
    "account_id",
    "build",
    "dev",
    "env",
    "keep_vars",
    "limits",
    "logpush",
    "main",
    "minify",
    "observability",
    "placement",
    "preview_urls",
    "route",
    "routes",
    "send_metrics",
    "upload_source_maps",
    "workers_dev",
];

/// What a Worker is served with.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// Its name; part of the keys that the objects' files lie under.
    pub(crate) name: String,
    /// `2026-11-17`: what the runtime's behaviour is fixed to.
    pub(crate) compatibility_date: String,
    /// Behaviour that differs from that of the date.
    pub(crate) compatibility_flags: Vec<String>,
    /// Variables; those that are no text are given to the Worker as JSON values.
    pub(crate) vars: BTreeMap<String, toml::Value>,
    /// Bindings of objects: their class by their name.
    pub(crate) objects: BTreeMap<String, String>,
    /// The key of every class that the migrations leave, which its ids and files belong to.
    pub(crate) classes: BTreeMap<String, String>,
    /// What became of the classes, the first deployment first.
    pub(crate) migrations: Vec<Migration>,
}

#[derive(Deserialize)]
struct File {
    name: Option<String>,
    compatibility_date: Option<String>,
    #[serde(default)]
    compatibility_flags: Vec<String>,
    #[serde(default)]
    vars: BTreeMap<String, toml::Value>,
    #[serde(default)]
    durable_objects: DurableObjects,
    #[serde(default)]
    migrations: Vec<Migration>,
    #[serde(flatten)]
    rest: toml::Table,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DurableObjects {
    bindings: Vec<Binding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)] // `script_name` would be a class of another Worker
struct Binding {
    name: String,
    class_name: String,
}

impl Config {
    /// Reads the `wrangler.toml` in the folder of a crate.
    ///
    /// # Errors
    /// There is none, or it is not one that can be served.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let missing = || {
            let path = folder.join(FILE);
            let hint = "a Worker's crate has a wrangler.toml beside its Cargo.toml";
            Problem::new(format!("{}: there is none\n{hint}", path.display()))
        };
        Self::open_if_there(&folder.join(FILE))?.ok_or_else(missing)
    }

    /// Reads the `wrangler.second.toml` in the folder of a crate, if there is one: that of the deployment which a test
    /// puts in the place of the first.
    ///
    /// # Errors
    /// It is not one that can be served.
    pub(crate) fn second(folder: &Path) -> Outcome<Option<Self>> {
        Self::open_if_there(&folder.join(SECOND))
    }

    fn open_if_there(path: &Path) -> Outcome<Option<Self>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::read(&text).doing(path.display()).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).doing(path.display()),
        }
    }

    fn read(text: &str) -> Outcome<Self> {
        // toml's own errors start with a line feed's worth of context: which line, and a mark under it.
        let file: File = toml::from_str(text).map_err(|error| Problem::new(error.to_string().trim_end()))?;
        if let Some(key) = file.rest.keys().find(|key| !NOT_OURS.contains(&key.as_str())) {
            return Err(Problem::new(format!("{key:?} is a setting that cannot be served here")));
        }
        let name = file.name.filter(|name| is_word(name, "-_"));
        let name =
            name.ok_or_else(|| Problem::new("name is missing, or not of letters, digits, '-' and '_'"))?;
        let date = file.compatibility_date.filter(|date| is_date(date));
        let compatibility_date = date.ok_or_else(|| {
            Problem::new("compatibility_date is missing, or not a date in quotes such as \"2026-11-17\"")
        })?;
        if let Some(flag) = file.compatibility_flags.iter().find(|flag| !is_word(flag, "-_")) {
            return Err(Problem::new(format!("{flag:?} is no compatibility flag")));
        }
        let classes = Classes::of(&name, &file.migrations)?.keys;
        let mut config = Self {
            name,
            compatibility_date,
            compatibility_flags: file.compatibility_flags,
            classes,
            migrations: file.migrations,
            ..Self::default()
        };
        for (name, value) in file.vars {
            config.set(name, value)?;
        }
        for binding in file.durable_objects.bindings {
            config.bind(binding)?;
        }
        Ok(config)
    }

    /// Gives a variable this value, whatever it was.
    ///
    /// # Errors
    /// An object is bound to this name.
    pub(crate) fn set(&mut self, name: String, value: toml::Value) -> Outcome {
        if self.objects.contains_key(&name) {
            return Err(Problem::new(format!("{name:?} is both a variable and a binding of objects")));
        }
        self.vars.insert(name, value);
        Ok(())
    }

    fn bind(&mut self, Binding { name, class_name }: Binding) -> Outcome {
        if !self.classes.contains_key(&class_name) {
            return Err(Problem::new(format!(
                "the class {class_name:?} of binding {name:?} is in no migration: add it to new_sqlite_classes"
            )));
        }
        if self.vars.contains_key(&name) {
            return Err(Problem::new(format!("{name:?} is both a variable and a binding of objects")));
        }
        match self.objects.insert(name.clone(), class_name) {
            None => Ok(()),
            Some(_) => Err(Problem::new(format!("two bindings have the name {name:?}"))),
        }
    }
}

fn is_word(text: &str, more: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

fn is_date(text: &str) -> bool {
    let shape =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"room\"\ncompatibility_date = \"2026-11-17\"\n";

    fn fault(text: &str) -> String {
        Config::read(text).unwrap_err().to_string()
    }

    #[test]
    fn what_can_be_served_is_read() {
        let text = r#"
            name = "sync-server"
            main = "build/index.js"
            compatibility_date = "2026-11-17"
            compatibility_flags = ["enable_request_signal"]
            [build]
            command = "x"
            [vars]
            ROOM = "main"
            LIMIT = 3
            [[durable_objects.bindings]]
            name = "SYNC_ROOM"
            class_name = "Room"
            [[migrations]]
            tag = "v1"
            new_sqlite_classes = ["SyncRoom", "Old"]
            [[migrations]]
            tag = "v2"
            renamed_classes = [{ from = "SyncRoom", to = "Room" }]
            deleted_classes = ["Old"]
        "#;
        let config = Config::read(text).unwrap();
        assert_eq!(config.name, "sync-server");
        assert_eq!(config.compatibility_date, "2026-11-17");
        assert_eq!(config.compatibility_flags, ["enable_request_signal"]);
        assert_eq!(config.vars.get("ROOM").and_then(toml::Value::as_str), Some("main"));
        assert_eq!(config.vars.get("LIMIT").and_then(toml::Value::as_integer), Some(3));
        assert_eq!(config.objects, [("SYNC_ROOM".to_owned(), "Room".to_owned())].into());
        assert_eq!(config.classes, [("Room".to_owned(), "sync-server-SyncRoom".to_owned())].into());
        assert_eq!(config.migrations.len(), 2);
    }

    #[test]
    fn a_name_and_a_date_are_needed() {
        assert_eq!(Config::read(HEAD).unwrap().name, "room");
        assert!(fault("compatibility_date = \"2026-11-17\"").starts_with("name is missing"));
        assert!(fault("name = \"a/b\"\ncompatibility_date = \"2026-11-17\"").starts_with("name is missing"));
        for date in ["", "compatibility_date = \"today\"", "compatibility_date = \"2026-11-1\""] {
            assert!(
                fault(&format!("name = \"a\"\n{date}")).starts_with("compatibility_date is missing"),
                "{date}"
            );
        }
        assert!(fault("name = ").contains("line 1"));
    }

    #[test]
    fn what_cannot_be_served_is_an_error() {
        let with = |more: &str| fault(&format!("{HEAD}{more}"));
        assert_eq!(
            with("[[kv_namespaces]]\nbinding = \"K\""),
            "\"kv_namespaces\" is a setting that cannot be served here"
        );
        assert_eq!(
            with("compatibility_flag = []"),
            "\"compatibility_flag\" is a setting that cannot be served here"
        );
        assert!(
            with("[[durable_objects.bindings]]\nname = \"A\"\nclass_name = \"B\"\nscript_name = \"c\"")
                .contains("script_name")
        );
        let migration = |body: &str| with(&format!("[[migrations]]\ntag = \"v1\"\n{body}"));
        assert!(migration("transferred_classes = []").contains("transferred_classes"));
        assert!(migration("deleted_classes = [\"A\"]").contains("which does not exist"));
    }

    #[test]
    fn a_bound_class_must_be_made_by_a_migration() {
        let binding = "[[durable_objects.bindings]]\nname = \"A\"\nclass_name = \"B\"\n";
        assert_eq!(
            fault(&format!("{HEAD}{binding}")),
            "the class \"B\" of binding \"A\" is in no migration: add it to new_sqlite_classes"
        );
        let migration = "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"B\"]\n";
        assert_eq!(
            fault(&format!("{HEAD}{binding}{binding}{migration}")),
            "two bindings have the name \"A\""
        );
        assert_eq!(
            fault(&format!("{HEAD}{binding}{migration}[vars]\nA = \"\"")),
            "\"A\" is both a variable and a binding of objects"
        );
        assert!(fault(&format!("{HEAD}{migration}{migration}")).contains("two migrations have it"));
    }
}
