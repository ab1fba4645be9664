//! The Worker, as its tests start it, end it and look into it.

use crate::{
    common::{Place, Server},
    workerd::{Added, LISTENS, port, serve},
};
use serde_json::Value;

impl Place {
    /// Starts the server on a free port of this machine.
    pub(crate) async fn start(&self) -> Server {
        self.start_at("127.0.0.1").await
    }

    /// The same, with the switch that takes the room out of memory.
    pub(crate) async fn start_drowsy(&self) -> Server {
        self.start_with("127.0.0.1", Added { loopback: true, observed: true }).await
    }

    /// Starts the server on a free port of this address. Only a loopback address gets the variable `LOOPBACK`, as from
    /// `cargo xtask workers dev`.
    pub(crate) async fn start_at(&self, host: &str) -> Server {
        self.start_with(host, Added { loopback: host != "0.0.0.0", observed: false }).await
    }

    async fn start_with(&self, host: &str, added: Added) -> Server {
        let command = serve(added, &self.data(), &format!("{host}:0"));
        let address = |line: &str| format!("{host}:{}", port(line)?).parse().ok();
        Server::launch(&mut command.unwrap_or_else(|error| panic!("{error}")), LISTENS, address).await
    }
}

impl Server {
    async fn seen(&self, what: &str) -> usize {
        let answer = self.ask("GET", "/__seen", &[], "").await;
        let seen: Value = serde_json::from_str(answer.text()).expect("a server started with start_drowsy");
        seen[what].as_u64().unwrap().try_into().unwrap()
    }

    /// How often the room was made.
    pub(crate) async fn constructed(&self) -> usize {
        self.seen("constructed").await
    }

    /// How many messages the room was given.
    pub(crate) async fn messages(&self) -> usize {
        self.seen("webSocketMessage").await
    }

    /// Takes the room out of memory, with its sockets left open, by the runtime's own switch.
    pub(crate) async fn asleep(&self) {
        assert!(self.constructed().await > 0, "it never was in memory");
        assert_eq!(self.ask("GET", "/__evict", &[], "").await.text(), "evicted");
    }

    /// Ends it, and checks that nothing went wrong inside. Not by SIGTERM, on which workerd waits for all who are
    /// connected.
    pub(crate) async fn stop(self) {
        let log = self.log();
        assert!(!log.contains("panicked at") && !log.contains("Uncaught"), "{log}");
        self.kill().await;
    }
}
