//! The configuration of workerd for one Worker: a text in the language of Cap'n Proto.

use super::config::Config;
use std::fmt::Write;

/// The name of the constant in the file: `workerd serve FILE config`.
pub(crate) const CONSTANT: &str = "config";
/// The socket that takes requests, for `--socket-addr`.
pub(crate) const SOCKET: &str = "http";
/// The folder of the objects' files, for `--directory-path`. The file itself names none that exists.
pub(crate) const DATA: &str = "data";

/// The file, for a folder that also has `index.js` and `index_bg.wasm`. With `testing` the Worker may import the
/// module `workerd:unsafe`, and workerd asks for `--experimental`.
pub(crate) fn file(config: &Config, testing: bool) -> String {
    let mut flags: Vec<String> = config.compatibility_flags.iter().map(|flag| quoted(flag)).collect();
    if testing {
        flags.push(quoted("unsafe_module"));
    }
    let mut namespaces = Vec::new();
    for (class, key) in &config.classes {
        let (class, key) = (quoted(class), quoted(key));
        namespaces.push(format!("(className = {class}, uniqueKey = {key}, enableSql = true)"));
    }
    let mut bindings = Vec::new();
    for (name, value) in &config.vars {
        let value = match value {
            toml::Value::String(text) => format!("text = {}", quoted(text)),
            other => format!("json = {}", quoted(&json(other).to_string())),
        };
        bindings.push(format!("(name = {}, {value})", quoted(name)));
    }
    for (name, class) in &config.objects {
        bindings.push(format!("(name = {}, durableObjectNamespace = {})", quoted(name), quoted(class)));
    }
    format!(
        r#"# Written by `cargo xtask workers`.
using Workerd = import "/workerd/workerd.capnp";

const {CONSTANT} :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "{DATA}", disk = (path = "/set/by/directory-path", writable = true)),
  ],
  sockets = [(name = "{SOCKET}", address = "127.0.0.1:0", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "index.js"),
    (name = "index_bg.wasm", wasm = embed "index_bg.wasm"),
  ],
  compatibilityDate = {date},
  compatibilityFlags = [{flags}],
  durableObjectNamespaces = [{namespaces}],
  durableObjectStorage = (localDisk = "{DATA}"),
  bindings = [{bindings}],
);
"#,
        date = quoted(&config.compatibility_date),
        flags = flags.join(", "),
        namespaces = lines(&namespaces),
        bindings = lines(&bindings),
    )
}

/// The items of a list, each on a line.
fn lines(items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("\n    {},\n  ", items.join(",\n    ")) }
}

/// A text of Cap'n Proto. Its quotes know the escapes of C.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _ = write!(quoted, "\\x{:02x}", u32::from(c)); // cannot fail
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// As wrangler gives it to the Worker.
fn json(value: &toml::Value) -> serde_json::Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(is) => (*is).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Config {
        Config {
            name: "sync-server".to_owned(),
            compatibility_date: "2026-11-17".to_owned(),
            compatibility_flags: vec!["enable_request_signal".to_owned()],
            vars: toml::from_str("ROOM = \"a\\\"b\"\nLIMITS = { sockets = 3, on = true }").unwrap(),
            objects: [("SYNC_ROOM".to_owned(), "SyncRoom".to_owned())].into(),
            classes: [("Log", "sync-server-Old"), ("SyncRoom", "sync-server-SyncRoom.2")]
                .map(|(class, key)| (class.to_owned(), key.to_owned()))
                .into(),
            migrations: Vec::new(),
        }
    }

    #[test]
    fn the_file_has_everything_of_the_configuration() {
        let file = file(&example(), false);
        for line in [
            r#"  compatibilityDate = "2026-11-17","#,
            r#"  compatibilityFlags = ["enable_request_signal"],"#,
            r#"    (className = "Log", uniqueKey = "sync-server-Old", enableSql = true),"#,
            r#"    (className = "SyncRoom", uniqueKey = "sync-server-SyncRoom.2", enableSql = true),"#,
            r#"    (name = "LIMITS", json = "{\"on\":true,\"sockets\":3}"),"#,
            r#"    (name = "ROOM", text = "a\"b"),"#,
            r#"    (name = "SYNC_ROOM", durableObjectNamespace = "SyncRoom"),"#,
        ] {
            let line = line.replace(r#""a"b""#, r#""a\"b""#);
            assert!(file.lines().any(|found| found == line), "{line}\n{file}");
        }
        assert!(!file.contains("unsafe_module"));
    }

    #[test]
    fn a_test_build_has_the_unsafe_module_and_lists_may_be_empty() {
        let bare =
            Config { name: "a".to_owned(), compatibility_date: "2026-11-17".to_owned(), ..Config::default() };
        let file = file(&bare, true);
        assert!(file.contains(r#"compatibilityFlags = ["unsafe_module"],"#));
        assert!(file.contains("durableObjectNamespaces = [],\n"));
        assert!(file.contains("bindings = [],\n"));
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n\té\u{7f}"), r#""a\"b\\c\x0a\x09é\x7f""#);
    }
}
