//! What concerns loading what is not there.

use crate::TtlProbe;
use do_core::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What can be told about loading what is not there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadCommand {}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) async fn load_command(&self, _store: &str, command: LoadCommand) -> Result<Value, Failure> {
        match command {}
    }
}
