//! The native server, as its tests start it, end it and look into it.

use crate::{
    binary::{FIRST_LINE, serve},
    common::{Place, Server, eventually},
};
use tokio::process::Command;

impl Place {
    /// Starts the server on a free port of this machine.
    pub(crate) async fn start(&self) -> Server {
        self.start_at("127.0.0.1").await
    }

    /// The same, with the shortest time after which an idle room leaves memory.
    pub(crate) async fn start_drowsy(&self) -> Server {
        Server::spawn(serve(&self.folder(), &self.data(), "127.0.0.1:0").args(["--idle", "1"])).await
    }

    /// Starts the server on a free port of this address.
    pub(crate) async fn start_at(&self, host: &str) -> Server {
        Server::spawn(&mut serve(&self.folder(), &self.data(), &format!("{host}:0"))).await
    }
}

impl Server {
    pub(crate) async fn spawn(command: &mut Command) -> Self {
        command.env("RUST_LOG", "do_core=trace"); // what it logs tells how the room fares
        // Empty: what it writes first is its first line.
        Self::launch(command, "", |line| line.strip_prefix(FIRST_LINE)?.parse().ok()).await
    }

    /// How often a line of the log has all these words.
    pub(crate) fn logged(&self, words: &[&str]) -> usize {
        self.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    /// How often the room was made.
    pub(crate) async fn constructed(&self) -> usize {
        self.logged(&["constructed"])
    }

    /// How many messages the room was given.
    pub(crate) async fn messages(&self) -> usize {
        self.logged(&["deliver", "message"])
    }

    /// Waits until the room, which must have been in memory, is not any more.
    pub(crate) async fn asleep(&self) {
        let times = self.constructed().await;
        assert!(times > 0, "it never was in memory");
        eventually("the room leaves memory", async || self.logged(&["evicted"]) >= times).await;
        assert_eq!((self.logged(&["evicted"]), self.constructed().await), (times, times));
    }

    /// Ends it gracefully and checks that it says so.
    pub(crate) async fn stop(mut self) {
        self.terminate();
        let (status, rest) = self.ended().await;
        assert_eq!(status.code(), Some(0), "{}", self.log());
        assert_eq!(rest, [""; 0], "there is one line on standard output");
    }
}
