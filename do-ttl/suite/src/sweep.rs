//! What concerns sweeps, and what they tell.

use crate::TtlProbe;
use do_core::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What can be told about sweeps, and what they tell.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepCommand {}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) async fn sweep_command(&self, command: SweepCommand) -> Result<Value, Failure> {
        match command {}
    }
}
