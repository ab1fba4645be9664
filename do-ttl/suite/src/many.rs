//! What concerns many keys at once.

use crate::TtlProbe;
use do_core::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What can be told about many keys at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManyCommand {}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn many_command(&self, _store: &str, command: ManyCommand) -> Result<Value, Failure> {
        match command {}
    }
}
