//! What concerns loading what is not there.

use crate::{Command, GivenTtl, GivenValue, TtlProbe, given::told_value};
use bytes::Bytes;
use do_core::{
    Failure, ObjectState,
    testing::{Local, unless},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What can be told about loading what is not there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadCommand {
    /// The value, loaded if it is not there, which is noted.
    Get(Load),
    /// The same, where the loader says how long it is good for.
    GetFor(Load),
    /// As a number in a typed view.
    GetNumber(String, u64),
    /// After so many ms, what another command gives.
    Later(u64, Box<Command>),
    /// What another command gives, or `"dropped"` when it takes longer than so many ms.
    Within(u64, Box<Command>),
}

/// A load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Load {
    /// What is asked for.
    pub key: String,
    /// So many ms the loader takes.
    #[serde(default)]
    pub takes: u64,
    /// What it gives; without it, it fails.
    #[serde(default)]
    pub gives: Option<GivenValue>,
    /// How long that is good for.
    #[serde(default = "never")]
    pub ttl: GivenTtl,
}

fn never() -> GivenTtl {
    GivenTtl::Never(())
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn load_command<'a>(
        &'a self,
        store: &'a str,
        command: LoadCommand,
    ) -> Local<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let store = self.store(store)?;
            Ok(match command {
                LoadCommand::Get(load) => {
                    let (key, ttl) = (load.key.clone(), load.ttl);
                    told_value(&store.get_or_insert_with(&key, ttl, async || self.load(load).await).await?)
                }
                LoadCommand::GetFor(load) => {
                    let (key, ttl) = (load.key.clone(), load.ttl);
                    told_value(&store.get_or_load(&key, async || Ok((self.load(load).await?, ttl))).await?)
                }
                LoadCommand::GetNumber(key, number) => {
                    let ttl = GivenTtl::Never(());
                    json!(store.typed::<u64>().get_or_insert_with(&key, ttl, async || Ok(number)).await?)
                }
                LoadCommand::Later(ms, command) => {
                    self.state.sleep(Duration::from_millis(ms)).await;
                    self.command(*command).await?
                }
                LoadCommand::Within(ms, command) => {
                    let over = self.state.sleep(Duration::from_millis(ms));
                    unless(self.command(*command), over).await.unwrap_or_else(|| Ok(json!("dropped")))?
                }
            })
        })
    }

    async fn load(&self, load: Load) -> Result<Bytes, Failure> {
        self.log.note(json!({"event": "load", "key": load.key}))?;
        if load.takes > 0 {
            self.state.sleep(Duration::from_millis(load.takes)).await;
        }
        load.gives.map(Bytes::from).ok_or_else(|| Failure::msg("nothing to load"))
    }
}
