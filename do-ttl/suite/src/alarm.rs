//! The object's alarm, and what else is to come by it.

use crate::{Settings, TtlProbe};
use do_core::{AlarmScheduler, Failure, ObjectState, Plan, SqlStorage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What the object's alarm can be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlarmCommand {
    /// When the slot of the object comes, in ms.
    Get,
    /// When the sweeper's own comes, where it has a slot of the schedule.
    Slot,
    /// Sets the object's alarm, in so many ms.
    Set(u64),
    /// Does what the alarm does, at once.
    Run,
    /// Deletes the object's alarm.
    Delete,
    /// Another job of the schedule, in so many ms.
    Job(String, u64),
    /// Another slot of the schedule, in so many ms.
    Other(u64),
    /// The names of what is pending in the schedule.
    Pending,
    /// From now on, or no more, the sweeper's slot cannot be set: the database refuses.
    Broken(bool),
    /// Wakes, jobs, alarms set, and rows read and written by the schedule.
    Stats,
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) async fn alarm_command(&self, command: AlarmCommand) -> Result<Value, Failure> {
        let after = |ms| self.state.now() + Duration::from_millis(ms);
        Ok(match command {
            AlarmCommand::Get => json!(self.state.alarms().get().await?),
            AlarmCommand::Slot => json!(self.schedule.slot(Settings::SLOT).get().await?),
            AlarmCommand::Set(ms) => {
                self.state.alarms().set(after(ms)).await?;
                Value::Null
            }
            AlarmCommand::Run => {
                self.sweeper().on_alarm().await?;
                Value::Null
            }
            AlarmCommand::Delete => {
                self.state.alarms().delete().await?;
                Value::Null
            }
            AlarmCommand::Job(name, ms) => {
                self.schedule.put(&name, Plan::at(after(ms))).await?;
                Value::Null
            }
            AlarmCommand::Other(ms) => {
                self.schedule.slot("other").set(after(ms)).await?;
                Value::Null
            }
            AlarmCommand::Pending => {
                let pending = self.schedule.pending("", 100)?;
                json!(pending.iter().map(|job| job.name.as_str()).collect::<Vec<_>>())
            }
            AlarmCommand::Broken(is) => {
                self.break_slot(is)?;
                Value::Null
            }
            AlarmCommand::Stats => {
                let stats = self.schedule.stats();
                json!([stats.wakes, stats.jobs, stats.alarms_set, stats.rows_read, stats.rows_written])
            }
        })
    }

    /// A slot is set by a new row, or by one that takes the place of the one that runs; what the schedule itself writes
    /// about a run that failed is neither.
    fn break_slot(&self, is: bool) -> Result<(), Failure> {
        let sql = if is {
            "CREATE TRIGGER probe_insert BEFORE INSERT ON _schedule WHEN NEW.key = 'ttl'
                 BEGIN SELECT RAISE(ABORT, 'the slot is broken'); END;
             CREATE TRIGGER probe_update BEFORE UPDATE ON _schedule WHEN NEW.key = 'ttl' AND NEW.attempt = 0
                 BEGIN SELECT RAISE(ABORT, 'the slot is broken'); END"
        } else {
            "DROP TRIGGER probe_insert; DROP TRIGGER probe_update"
        };
        self.state.sql().exec(sql, ())?;
        Ok(())
    }
}
