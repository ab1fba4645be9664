//! The cases without a host: what can be said of them before any runs.

use super::{
    case::{Case, Fault, Needs, Outcome},
    cases::cases,
    deployment::Deployment,
    difference::HostKind,
    driver::{Client, Driver, Opened, PanicCost, Received},
    exchange::{Exchange, Head, Leave, Piece},
};
use crate::Message;
use std::time::Duration;

/// A case as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// What it does to a host, and which hosts it is about.
    pub needs: Needs,
}

/// All cases, in the order of [`cases`](super::cases()), for which no host has to be named.
pub fn catalogue() -> Vec<Listed> {
    listed(&cases())
}

/// The same for the cases of another suite.
pub fn listed(cases: &[Case<Nowhere>]) -> Vec<Listed> {
    cases.iter().map(|case| Listed { name: case.name, needs: case.needs }).collect()
}

/// The host that there is none of: cases are generic over one, and can be listed for this one.
#[derive(Debug)]
pub enum Nowhere {}

impl Driver for Nowhere {
    type Client = Self;
    type Exchange = Self;

    fn kind(&self) -> HostKind {
        match *self {}
    }

    async fn post(&self, _: &str, _: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
        match *self {}
    }

    async fn begin(&self, _: Head) -> Result<Self, Fault> {
        match *self {}
    }

    async fn open(&self, _: &str) -> Result<Opened<Self>, Fault> {
        match *self {}
    }

    async fn advance(&self, _: Duration) -> Outcome {
        match *self {}
    }

    async fn evict(&self) -> Outcome {
        match *self {}
    }

    fn eviction_takes(&self) -> Duration {
        match *self {}
    }

    async fn deploy(&self, _: Deployment) -> Outcome {
        match *self {}
    }

    async fn crash(&self) -> Outcome {
        match *self {}
    }

    fn panic_cost(&self) -> PanicCost {
        match *self {}
    }
}

impl Client for Nowhere {
    fn protocol(&self) -> Option<&str> {
        match *self {}
    }

    async fn send(&mut self, _: Message) -> Outcome {
        match *self {}
    }

    async fn frame(&mut self, _: u8, _: &[u8]) -> Outcome {
        match *self {}
    }

    async fn close(&mut self, _: Option<(u16, &str)>) -> Outcome {
        match *self {}
    }

    async fn receive(&mut self) -> Result<Received, Fault> {
        match *self {}
    }

    fn lose(self) {
        match self {}
    }
}

impl Exchange for Nowhere {
    async fn send(&mut self, _: &[u8]) -> Outcome {
        match *self {}
    }

    async fn finish(&mut self) -> Outcome {
        match *self {}
    }

    async fn head(&mut self) -> Result<http::Response<()>, Fault> {
        match *self {}
    }

    async fn read(&mut self, _: usize) -> Result<Piece, Fault> {
        match *self {}
    }

    async fn half_close(&mut self) -> Outcome {
        match *self {}
    }

    fn leave(self, _: Leave) {
        match self {}
    }
}
