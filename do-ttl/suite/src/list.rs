//! What concerns listing.

use crate::TtlProbe;
use do_core::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What can be told about listing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListCommand {}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn list_command(&self, _store: &str, command: ListCommand) -> Result<Value, Failure> {
        match command {}
    }
}
