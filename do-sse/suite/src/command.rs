use crate::{AlarmCommand, FeedCommand, FeedProbe, SendCommand, Settings, StoredCommand};
use do_core::{Failure, ObjectState, SqlStorage, testing::Local};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a probe can be told: of each feature its own enum.
///
/// As JSON, `{"feed": "count"}` or `{"send": {"broadcast": {"data": "hi"}}}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Keeps the settings, and makes the object's feed anew by them. Before anyone comes.
    Configure(Box<Settings>),
    /// What handlers were told, an object for each call.
    Log,
    /// When instances were constructed, in ms.
    Boots,
    /// The object's time, in ms.
    Now,
    /// Writes a row, and then does these.
    Written(Vec<Command>),
    /// Does these in a turn whose commit fails.
    Undone(Vec<Command>),
    /// Does it so often.
    Times(u32, Box<Command>),
    /// The feed and who is connected.
    Feed(FeedCommand),
    /// Events.
    Send(SendCommand),
    /// The object's alarm and its jobs.
    Alarm(AlarmCommand),
    /// The database, and what the feed keeps there.
    Stored(StoredCommand),
}

impl<S: ObjectState> FeedProbe<S> {
    /// What one command gives.
    pub(crate) fn command(&self, command: Command) -> Local<'_, Result<Value, Failure>> {
        Box::pin(async move {
            Ok(match command {
                Command::Configure(settings) => self.configure(&settings)?,
                Command::Log => self.log.lines()?,
                Command::Boots => self.log.boots()?,
                Command::Now => json!(self.state.now()),
                Command::Written(commands) => {
                    self.write()?;
                    self.all(commands).await?
                }
                Command::Undone(commands) => {
                    self.state.sql().exec("INSERT INTO child VALUES (99)", ())?;
                    self.all(commands).await?
                }
                Command::Times(times, command) => self.all(vec![*command; times as usize]).await?,
                Command::Feed(command) => self.feed_command(command).await?,
                Command::Send(command) => self.send_command(command)?,
                Command::Alarm(command) => self.alarm_command(command).await?,
                Command::Stored(command) => self.stored_command(command)?,
            })
        })
    }

    async fn all(&self, commands: Vec<Command>) -> Result<Value, Failure> {
        let mut values = Vec::with_capacity(commands.len());
        for command in commands {
            values.push(self.command(command).await?);
        }
        Ok(Value::Array(values))
    }

    /// So that what follows in this turn leaves with its commit.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        self.state.sql().exec("INSERT OR REPLACE INTO parent VALUES (1)", ())?;
        Ok(())
    }

    /// What a body gives: a command, or a list of them, whose values are a list too.
    pub(crate) async fn commands(&self, told: Value) -> Result<Value, Failure> {
        match told {
            Value::Array(_) => self.all(serde_json::from_value(told)?).await,
            _ => self.command(serde_json::from_value(told)?).await,
        }
    }
}
