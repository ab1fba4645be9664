//! The probe's steps over the alarm slot that go beyond setting, reading and emptying it.

use super::probe::Inner;
use crate::{AlarmInfo, AlarmScheduler, DurableObject, Failure, ObjectState, SqlExt, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What to do with the slot. Times are in ms from now; what sets one gives the time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AlarmStep {
    /// Calls `set` and drops what it gives unawaited.
    SetUnawaited(i64),
    /// The same with a time of its own.
    SetUnawaitedAt(i64),
    SetEarlier(i64),
    /// Sets the time that the last run was told.
    SetAgain,
    /// What a class without an alarm handler does when its alarm runs.
    RunDefault,
}

/// A class that has nothing but its constructor.
struct Bare;

impl<S: ObjectState> DurableObject<S> for Bare {
    fn new(_: S) -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl<S: ObjectState> Inner<S> {
    pub(super) async fn alarm_step(&self, step: &AlarmStep) -> Result<Value, Failure> {
        let alarms = self.state.alarms();
        Ok(match step {
            AlarmStep::SetUnawaited(after) => {
                let at = self.after(*after);
                drop(alarms.set(at));
                json!(at)
            }
            AlarmStep::SetUnawaitedAt(ms) => {
                drop(alarms.set(Timestamp::from_millis(*ms)));
                json!(ms)
            }
            AlarmStep::SetEarlier(after) => {
                let at = self.after(*after);
                alarms.set_earlier(at).await?;
                json!(at)
            }
            AlarmStep::SetAgain => {
                let told = "SELECT scheduled FROM runs ORDER BY rowid DESC LIMIT 1";
                let at = self.state.sql().scalar::<Timestamp>(told, ())?;
                let at = at.ok_or_else(|| Failure::msg("there was no run"))?;
                alarms.set(at).await?;
                json!(at)
            }
            AlarmStep::RunDefault => {
                let info = AlarmInfo::new(self.state.now(), 0);
                DurableObject::<S>::alarm(&Bare, info).await?;
                Value::Null
            }
        })
    }
}
