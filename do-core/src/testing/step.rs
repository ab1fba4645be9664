use super::alarms::AlarmStep;
use super::first_event::FirstEventStep;
use super::life::LifeStep;
use super::schedule_steps::ScheduleStep;
use super::socket_steps::SocketStep;
use super::sql::SqlStep;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that the probe does. Times are in ms, alarms relative to now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Which instance this is.
    Instance,
    /// How often the object was constructed, failed constructions left out.
    Boots,
    /// The name and the id that the object sees.
    Name,
    Id,
    Now,
    /// The URI of the request.
    Uri,
    /// A variable of the environment.
    Var(String),
    /// A number in memory.
    Add(i64),
    /// Waits with sleeps until the number in memory is at least this.
    WaitFor(i64),
    /// Gives way to everything else until the number in memory is at least this. Native only: a Worker's event
    /// loop does not get a turn by it.
    SpinUntil(i64),
    /// Runs SQL and gives the first column of all rows.
    Sql(String),
    /// Runs SQL with parameters and gives columns and rows with the kind of each value.
    Query(String, Vec<Cell>),
    /// Notes a line with the time: `log` gives all of them.
    Note(String),
    /// Notes what the steps gave, as JSON; steps that await are refused there.
    NoteOf(Vec<Step>),
    Log,
    Sleep(u64),
    /// Reads the number in SQL, awaits storage alone or a pause as well, and writes it back plus one.
    Increment(Option<u64>),
    SetAlarm(i64),
    SetAlarmAt(i64),
    GetAlarm,
    DeleteAlarm,
    Alarm(AlarmStep),
    /// Notes what the slot is set to.
    NoteAlarm,
    /// The steps, as long as the alarm has not run more often than this.
    UpToRuns(i64, Vec<Step>),
    /// What the alarm handler does from now on.
    OnAlarm(Vec<Step>),
    /// What the constructor does from now on.
    OnNew(Vec<Step>),
    /// What the handlers of messages, that are no steps themselves, and of closes do from now on.
    OnMessage(Vec<Step>),
    OnClose(Vec<Step>),
    /// What alarm handlers were told: time, scheduled, retries.
    Runs,
    /// What socket handlers were told, a line each.
    Events,
    /// Fails before that time, each time with another text.
    FailBefore(i64),
    Fail(String),
    /// Fails with a type of its own.
    FailTyped,
    Panic(String),
    Reset(String),
    WaitUntil(Vec<Step>),
    Gate(Vec<Step>),
    /// Closes the gate and does not wait.
    GateDetached(Vec<Step>),
    /// Two gates asked for in one turn, both awaited.
    TwoGates(Vec<Step>, Vec<Step>),
    /// A gate that waits for work that it spawned.
    GateOverBackground(Vec<Step>),
    /// Gates within gates, this many.
    Nest(u32),
    /// Inside a transaction; steps that await are refused there.
    Transaction(Vec<Step>),
    /// The steps, whose error is given as a text.
    Catch(Vec<Step>),
    /// The steps: `{"ok": values}`, or `{"error": ..}` with all that an error tells.
    Try(Vec<Step>),
    DeleteAll,
    /// The answer is a body that stays open.
    Open,
    Chunk(String),
    Close,
    /// Over the bodies of the request and of its answer.
    Body(BodyStep),
    /// Over work for the first event.
    FirstEvent(FirstEventStep),
    /// Over a schedule that the object hosts.
    Schedule(ScheduleStep),
    /// Over ids, stubs and the instance.
    Life(LifeStep),
    /// Over sockets, beyond what follows here.
    Sockets(SocketStep),
    /// Over the database.
    Db(SqlStep),
    /// A request to another object of the class: waits for the answer.
    Call(String, Vec<Step>),
    /// The same without waiting.
    CallDetached(String, Vec<Step>),
    /// Sends a text, or bytes, or the message at hand.
    Send(Who, String),
    SendBytes(Who, Vec<u8>),
    Echo,
    /// Closes with a code and a reason, or without.
    CloseSockets(Who, Option<(u16, String)>),
    /// How many sockets there are, and for each one, sorted, its tags, its state, or its attachment.
    Count(Who),
    Tags(Who),
    States(Who),
    Attachments(Who),
    Attach(Who, Value),
    /// Attaches a text that is this many bytes long as JSON.
    AttachBytes(Who, usize),
    AutoResponse(Option<(String, String)>),
    /// When the host last answered each by itself.
    AutoResponsesAt(Who),
}

/// What to do with the bodies of the request that brought the steps. Those that set something of the answer replace what
/// the steps gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BodyStep {
    /// Answers with the body at hand, untouched.
    Echo,
    /// How many bytes the body at hand has.
    Count,
    /// Notes that, or the kind of the error that it ended with.
    NoteCount,
    /// The text of its next chunk alone.
    First,
    /// The text of all that is left of it.
    Whole,
    /// Drops it.
    Drop,
    /// Makes the body of another object's answer the one at hand, and gives its status.
    Take(String, Vec<Step>),
    /// Answers with the answer of another object as it is.
    Pass(String, Vec<Step>),
    /// Calls another object with a body that stays open, and does not wait.
    Upload(String, Vec<Step>),
    /// Answers with a body that stays open and holds so many bytes.
    Channel(usize),
    /// Notes when the reader of the open body is gone.
    NoteClosed,
    /// Writes to the open body: `"sent"`, `"full"` or `"closed"`.
    Write(String),
    /// Writes chunks of this size until one is not taken: how many bytes were, and what became of the last.
    Fill(usize),
    /// Bytes of the open body that were not taken yet.
    Queued,
    IsClosed,
    /// Answers with a text, a status, one more header.
    Text(String),
    Status(u16),
    Header(String, String),
    /// The values of a header of the request.
    Told(String),
}

/// Which sockets a step means.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Who {
    /// The one whose event this is.
    This,
    All,
    /// All but that one.
    Others,
    Tagged(String),
}

/// A value in SQL with its kind, which plain JSON does not tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
    /// Only as a parameter.
    Bool(bool),
}

impl From<Cell> for crate::Value {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Integer(i) => i.into(),
            Cell::Real(r) => r.into(),
            Cell::Text(text) => text.into(),
            Cell::Blob(blob) => Self::Blob(blob),
            Cell::Bool(b) => b.into(),
        }
    }
}

impl From<&crate::Value> for Cell {
    fn from(value: &crate::Value) -> Self {
        use crate::Value as V;
        match value {
            V::Null => Self::Null,
            V::Integer(i) => Self::Integer(*i),
            V::Real(r) => Self::Real(*r),
            V::Text(text) => Self::Text(text.clone()),
            V::Blob(blob) => Self::Blob(blob.clone()),
        }
    }
}
