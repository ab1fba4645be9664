//! The checks, a file for each group. The order is from cheap to dear, so that a small fault shows early.

mod autobahn;
mod browser;
mod client;
mod clients;
mod lint;
mod test;
mod tree;
mod wasm;

use crate::contract;
use crate::step::Step;
use crate::workers;

/// All checks in the order of the run.
pub(crate) fn all() -> Vec<Step> {
    let step = |name, about, run| Step { name, about, long: false, run };
    let long = |name, about, run| Step { name, about, long: true, run };
    vec![
        step("fmt", "the sources are formatted", lint::fmt),
        step("deps", "what must not be in a crate's dependency tree is not there", tree::check),
        step(
            "clippy",
            "clippy without warnings: all targets and features, and each library by itself",
            lint::clippy,
        ),
        step("doc", "the documentation builds without warnings", lint::doc),
        step("check-wasm", "the libraries compile for wasm32, each by itself and all together", wasm::check),
        step("clippy-wasm", "clippy without warnings for wasm32, all features", wasm::clippy),
        step("doc-wasm", "the documentation of what only wasm32 has builds without warnings", wasm::doc),
        step(
            "client",
            "the JavaScript client keeps its rules and has the types that it declares",
            client::check,
        ),
        step("test", "unit, integration and documentation tests", test::test),
        step("examples", "the example programs build", test::examples),
        step("autobahn", "the WebSocket conformance cases pass against an echo object", autobahn::check),
        step(
            "sse-clients",
            "clients of server-sent events from npm, and curl, read the feeds of do-sse",
            clients::check,
        ),
        step(
            "browser",
            "the JavaScript client, the page of sync-server and EventSource work in a real browser",
            browser::check,
        ),
        step(
            "contract",
            "all hosts keep the contract, of which PLATFORM.md says where they differ, and the promises of do-sync, \
             do-sse and do-ttl",
            contract::check,
        ),
        step(
            "workers",
            "the examples, and the page of the sync server, hold in workerd",
            workers::test::test,
        ),
        long(
            "test-long",
            "the tests again with the random cases of a long run, a million of them for the schedule (--full)",
            test::test_long,
        ),
        long(
            "sse-nginx",
            "the same clients read the feeds through nginx as it comes (--full)",
            clients::check_nginx,
        ),
        long(
            "contract-long",
            "the cases of the suites that wait long, in workerd (--full)",
            contract::check_long,
        ),
    ]
}
