//! What concerns the limits of a store, and its statistics.

use crate::TtlProbe;
use do_core::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What can be told about the limits of a store, and its statistics.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitsCommand {}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn limits_command(&self, _store: &str, command: LimitsCommand) -> Result<Value, Failure> {
        match command {}
    }
}
