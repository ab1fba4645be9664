//! The Worker's entry module, before it is bundled: `worker-build`'s own template, filled as `worker-build` does it.
//! The template is that of the version of `worker` in Cargo.lock, because the two know each other's inside.

use crate::problem::{Outcome, Problem};
use std::collections::BTreeSet;

/// Where the template wants the handlers.
const HANDLERS: &str = "$HANDLERS";
/// What the classes are wrapped with; the template declares it.
const HOOKS: &str = "classProxyHooks";
/// The class that the handlers go to; the template declares it.
const ENTRYPOINT: &str = "class Entrypoint extends WorkerEntrypoint";
/// Functions that are for the template and not for callers.
const INTERNAL: [&str; 2] = ["__wbg_reset_state", "__worker_init_state"];
/// Handlers that want the environment and the context, which they find in the entry point. Anything else is RPC.
const EVENTS: [&str; 5] = ["fetch", "queue", "scheduled", "email", "connect"];

/// Lets a test evict the objects, which otherwise takes ten idle seconds. Answers when they are out of memory.
const EVICT: &str = r#"
import unsafe from "workerd:unsafe";
const serve = Entrypoint.prototype.fetch;
Entrypoint.prototype.fetch = function fetch(request) {
  const url = new URL(request.url);
  if (request.method !== "GET" || url.pathname !== "/__evict") return serve.call(this, request);
  const webSockets = url.searchParams.get("sockets") ?? "hibernate";
  return unsafe.evictAllDurableObjects({ webSockets }).then(
    () => new Response("evicted"),
    (error) => new Response(String(error), { status: 500 }),
  );
};
"#;

/// What wasm-bindgen's JavaScript exports.
#[derive(Debug, Default, PartialEq)]
struct Exports<'a> {
    functions: BTreeSet<&'a str>,
    classes: BTreeSet<&'a str>,
}

/// The entry module for the JavaScript of wasm-bindgen. With `testing` it also has `GET /__evict`.
///
/// # Errors
/// The template is not as this was written for, there is no `fetch`, or no class for a binding.
pub(crate) fn fill<'a>(
    template: &str,
    glue: &str,
    bound: impl IntoIterator<Item = &'a String>,
    testing: bool,
) -> Outcome<String> {
    for expected in [HANDLERS, HOOKS, ENTRYPOINT, r#"from "./index.js""#] {
        if !template.contains(expected) {
            return Err(Problem::new(format!(
                "the template of worker-build has no {expected:?}: it has changed, and shim.rs of xtask has to follow"
            )));
        }
    }
    let exports = Exports::read(glue)?;
    if !exports.functions.contains("fetch") {
        return Err(Problem::new(
            "the Worker has no fetch: export one, as with do_core::export!(fetch = route)",
        ));
    }
    if let Some(class) = bound.into_iter().find(|class| !exports.classes.contains(class.as_str())) {
        return Err(Problem::new(format!(
            "wrangler.toml binds the class {class}, which the Worker does not export; it exports {:?}",
            exports.classes
        )));
    }
    let mut handlers = String::new();
    for name in &exports.functions {
        handlers += &if EVENTS.contains(name) {
            format!(
                "Entrypoint.prototype.{name} = function {name} (arg) {{\n  return exports.{name}.call(this, arg, this.env, \
                 this.ctx);\n}}\n"
            )
        } else {
            format!("Entrypoint.prototype.{name} = exports.{name};\n")
        };
    }
    if testing {
        handlers += EVICT;
    }
    let mut shim = template.replace(HANDLERS, &handlers);
    for name in &exports.classes {
        shim += &format!("\nexport const {name} = new Proxy(exports.{name}, {HOOKS});");
    }
    Ok(shim + "\n")
}

/// The bundle with the import of the wasm module in the form that workerd reads: it does not know the newer one.
pub(crate) fn plain_imports(bundle: &str) -> String {
    bundle.replace("import source ", "import ")
}

impl<'a> Exports<'a> {
    /// The declarations of wasm-bindgen's module target: each starts a line.
    fn read(glue: &'a str) -> Outcome<Self> {
        let mut exports = Self::default();
        for line in glue.lines() {
            let Some(declaration) = line.strip_prefix("export ") else { continue };
            let declaration = declaration.strip_prefix("async ").unwrap_or(declaration);
            let name = |text: &'a str| text.split(['(', ' ', '{']).next().unwrap_or_default();
            if let Some(rest) = declaration.strip_prefix("function ") {
                exports.functions.insert(name(rest));
            } else if let Some(rest) = declaration.strip_prefix("class ") {
                exports.classes.insert(name(rest));
            } else if let Some(list) = declaration.strip_prefix('{').and_then(|rest| rest.split('}').next()) {
                // A function whose name is a word of JavaScript: `export { delete_ as delete };`
                let names = list.split(',').filter_map(|item| item.split(" as ").last()).map(str::trim);
                exports.functions.extend(names.filter(|name| !name.is_empty()));
            } else {
                return Err(Problem::new(format!(
                    "wasm-bindgen exports what shim.rs of xtask does not know: {line}"
                )));
            }
        }
        exports.functions.retain(|name| !INTERNAL.contains(name));
        Ok(exports)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLUE: &str = "/* @ts-self-types */\nimport source wasm from './x.wasm';\n\nexport class Room {\n  export() {}\n}\n\
                        export function __wbg_reset_state () {\nexport function __worker_init_state() {\n\
                        export function fetch(req, env, ctx) {\nexport async function ping(a) {\n\
                        function delete_() {}\nexport { delete_ as delete };\n";
    const TEMPLATE: &str = "import * as exports from \"./index.js\";\nclass Entrypoint extends WorkerEntrypoint {}\n\n$HANDLERS\n\n\
                            const classProxyHooks = {};\nexport default new Proxy(Entrypoint, classProxyHooks);\n";

    #[test]
    fn exports_are_read() {
        let expected = Exports { functions: ["delete", "fetch", "ping"].into(), classes: ["Room"].into() };
        assert_eq!(Exports::read(GLUE).unwrap(), expected);
        assert!(Exports::read("export const a = 1;").is_err());
    }

    #[test]
    fn the_template_is_filled() {
        let shim = fill(TEMPLATE, GLUE, [], false).unwrap();
        assert!(shim.contains(
            "Entrypoint.prototype.fetch = function fetch (arg) {\n  return exports.fetch.call(this, arg, this.env, \
             this.ctx);\n}\n"
        ));
        assert!(shim.contains("Entrypoint.prototype.ping = exports.ping;\n"));
        assert!(shim.ends_with("\nexport const Room = new Proxy(exports.Room, classProxyHooks);\n"));
        assert!(!shim.contains("$HANDLERS") && !shim.contains("__evict") && !shim.contains("reset_state"));
    }

    #[test]
    fn a_test_build_can_evict() {
        let shim = fill(TEMPLATE, GLUE, [], true).unwrap();
        let handler = shim.find("Entrypoint.prototype.fetch = function fetch (arg)").unwrap();
        assert!(shim.find("/__evict").unwrap() > handler);
    }

    #[test]
    fn another_template_or_no_handler_is_an_error() {
        for part in ["$HANDLERS", "classProxyHooks", "class Entrypoint", "./index.js"] {
            assert!(fill(&TEMPLATE.replace(part, "x"), GLUE, [], false).is_err(), "{part}");
        }
        let problem = fill(TEMPLATE, "export class Room {", [], false).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "the Worker has no fetch: export one, as with do_core::export!(fetch = route)"
        );
    }

    #[test]
    fn a_class_that_is_bound_must_be_exported() {
        assert!(fill(TEMPLATE, GLUE, [&"Room".to_owned()], false).is_ok());
        let problem = fill(TEMPLATE, GLUE, [&"Chat".to_owned()], false).unwrap_err().to_string();
        assert!(
            problem.starts_with("wrangler.toml binds the class Chat, which the Worker does not export"),
            "{problem}"
        );
    }

    #[test]
    fn imports_become_plain() {
        assert_eq!(plain_imports("import source a from \"./a.wasm\";"), "import a from \"./a.wasm\";");
    }
}
