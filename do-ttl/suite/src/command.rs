use crate::{
    AlarmCommand, LimitsCommand, ListCommand, LoadCommand, ManyCommand, Settings, StoreCommand,
    StoredCommand, SweepCommand, TtlProbe,
};
use do_core::{
    Error, ErrorKind, Failure, ObjectState, SqlStorage,
    testing::{Local, Thrown, all},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

/// What a probe can be told: of each feature its own enum, with the store where it is about one.
///
/// As JSON, `"log"` or `{"store": ["main", {"put": ["key", "value", 1000]}]}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Keeps the settings, and makes the object's sweeper and stores anew by them.
    Configure(Box<Settings>),
    /// What handlers were told, an object for each call.
    Log,
    /// When instances were constructed, in ms.
    Boots,
    /// The object's time, in ms.
    Now,
    /// Does these in a turn whose commit fails.
    Undone(Vec<Command>),
    /// Does these in a transaction, which fails or not. None of them may wait.
    Transaction {
        /// Whether it is rolled back.
        fails: bool,
        /// What is done.
        does: Vec<Command>,
    },
    /// `{"ok": value}` or `{"error": error}` of it.
    Attempt(Box<Command>),
    /// Does it so often.
    Times(u32, Box<Command>),
    /// Does these at once, so that they interleave where they wait.
    AtOnce(Vec<Command>),
    /// What it costs: rows read, rows written, and alarms set.
    Cost(Box<Command>),
    /// One key.
    Store(String, StoreCommand),
    /// Many keys.
    Many(String, ManyCommand),
    /// The keys themselves.
    List(String, ListCommand),
    /// What is loaded.
    Load(String, LoadCommand),
    /// Limits and statistics.
    Limits(String, LimitsCommand),
    /// Sweeps.
    Sweep(SweepCommand),
    /// The object's alarm and its jobs.
    Alarm(AlarmCommand),
    /// The database, and what the stores keep there.
    Stored(StoredCommand),
}

impl<S: ObjectState> TtlProbe<S> {
    /// What one command gives.
    pub(crate) fn command(&self, command: Command) -> Local<'_, Result<Value, Failure>> {
        Box::pin(async move {
            Ok(match command {
                Command::Configure(settings) => self.configure(&settings)?,
                Command::Log => self.log.lines()?,
                Command::Boots => self.log.boots()?,
                Command::Now => json!(self.state.now()),
                Command::Undone(commands) => {
                    self.state.sql().exec("INSERT INTO child VALUES (99)", ())?;
                    self.all(commands).await?
                }
                Command::Transaction { fails, does } => self.transaction(fails, does)?,
                Command::Attempt(command) => match self.command(*command).await {
                    Ok(value) => json!({"ok": value}),
                    Err(failure) => json!({"error": Thrown::from(&Error::from(failure))}),
                },
                Command::Times(times, command) => self.all(vec![*command; times as usize]).await?,
                Command::AtOnce(commands) => {
                    let commands = commands.into_iter().map(|command| self.command(command)).collect();
                    all(commands).await.into_iter().collect::<Result<_, _>>()?
                }
                Command::Cost(command) => self.cost(*command).await?,
                Command::Store(store, command) => self.store_command(&store, command)?,
                Command::Many(store, command) => self.many_command(&store, command)?,
                Command::List(store, command) => self.list_command(&store, command)?,
                Command::Load(store, command) => self.load_command(&store, command).await?,
                Command::Limits(store, command) => self.limits_command(&store, command).await?,
                Command::Sweep(command) => self.sweep_command(command).await?,
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

    /// The values, also where it is rolled back.
    fn transaction(&self, fails: bool, does: Vec<Command>) -> Result<Value, Failure> {
        let mut undone = None;
        let ended = self.state.sql().transaction(|| {
            let mut turn = pin!(self.all(does));
            let Poll::Ready(values) = turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
                return Err(Error::new(ErrorKind::Invalid, "a transaction does not wait").into());
            };
            if !fails {
                return values;
            }
            undone = Some(values?);
            Err(Error::new(ErrorKind::Application, "undone").into())
        });
        undone.map_or(ended, Ok)
    }

    async fn cost(&self, command: Command) -> Result<Value, Failure> {
        let before = self.sweeper().cost();
        self.command(command).await?;
        let after = self.sweeper().cost();
        Ok(json!([after[0] - before[0], after[1] - before[1], after[2] - before[2]]))
    }

    /// What a body gives: a command, or a list of them, whose values are a list too.
    pub(crate) async fn commands(&self, told: Value) -> Result<Value, Failure> {
        match told {
            Value::Array(_) => self.all(serde_json::from_value(told)?).await,
            _ => self.command(serde_json::from_value(told)?).await,
        }
    }
}
