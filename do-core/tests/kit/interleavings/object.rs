//! An object that runs scripts and tells the witness, and the same with faults of its own.

use super::{
    flaw,
    ops::{Script, Step, Whom},
    witness::{self, Answer, End, Job, Seen, What},
};
use do_core::{Body, prelude::*};
use futures::FutureExt as _;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

/// What a request asks for: the call's number, the script's, and the client's if it is a handshake.
pub(crate) type Asked = (u32, u32, Option<u32>);

pub(crate) struct Scripted<S: ObjectState, const FLAW: u8>(Rc<Shared<S>>);

struct Shared<S: ObjectState> {
    state: S,
    flaw: u8,
    object: u8,
    instance: u32,
    /// For the flaw [`flaw::DISORDER`].
    held: Cell<Option<(u32, u32, u32)>>,
}

/// One run of a handler, or of work that it began. Dropping it before its end is an end too.
struct Run<S: ObjectState> {
    shared: Rc<Shared<S>>,
    run: u32,
    turn: Cell<u32>,
    over: Cell<bool>,
    /// Rows that it read.
    read: RefCell<Vec<u32>>,
    socket: Option<SocketOf<S>>,
}

impl<S: ObjectState> Run<S> {
    fn begin(shared: &Rc<Shared<S>>, job: Job, socket: Option<SocketOf<S>>) -> Rc<Self> {
        let this = Self {
            shared: Rc::clone(shared),
            run: witness::number(),
            turn: Cell::new(witness::number()),
            over: Cell::new(false),
            read: RefCell::default(),
            socket,
        };
        this.saw(What::Begins(job));
        Rc::new(this)
    }

    fn saw(&self, what: What) {
        let (object, instance) = (self.shared.object, self.shared.instance);
        witness::saw(Seen { object, instance, run: self.run, what });
    }

    fn end(&self, end: End) {
        if !self.over.replace(true) {
            self.saw(What::Ends(end));
        }
    }

    /// After an await another turn runs.
    fn turned(&self) {
        self.turn.set(witness::number());
    }

    fn insert(&self, script: Option<u32>) -> Result<u32> {
        let row = witness::number();
        self.shared.state.sql().exec("INSERT INTO log (row, script) VALUES (?, ?)", (row, script))?;
        Ok(row)
    }

    async fn write(&self, rows: u8) -> Result<()> {
        for row in 0..rows {
            if self.shared.flaw == flaw::TORN && row > 0 {
                self.shared.state.sleep(Duration::ZERO).await;
            }
            if self.shared.flaw == flaw::ACK_FIRST {
                let (row, turn, state) = (witness::number(), witness::number(), self.shared.state.clone());
                self.saw(What::Writes { row, turn });
                self.shared.state.wait_until(async move {
                    state.sleep(Duration::from_millis(1)).await;
                    let _ = state.sql().exec("INSERT INTO log (row) VALUES (?)", (row,));
                });
                continue;
            }
            let row = self.insert(None)?;
            self.saw(What::Writes { row, turn: self.turn.get() });
            flaw::remember(self.shared.object, row);
        }
        Ok(())
    }

    /// A row that the witness does not know.
    fn undo(&self) {
        let _: Result<()> = self.shared.state.sql().transaction(|| {
            self.insert(None)?;
            Err(Failure::msg("undone"))
        });
    }

    /// The slot and the row that tells of it, both or none.
    fn alarm(&self, at: Option<Timestamp>, script: Option<u32>) -> Result<()> {
        let state = &self.shared.state;
        let row = state.sql().transaction(|| {
            let row = self.insert(script)?;
            let slot = match at {
                Some(at) => state.alarms().set(at).now_or_never(),
                None if self.shared.flaw == flaw::UNDEAD_ALARM => None,
                None => state.alarms().delete().now_or_never(),
            };
            slot.unwrap_or(Ok(()))?;
            Ok(row)
        })?;
        self.saw(What::Writes { row, turn: self.turn.get() });
        self.saw(What::Alarm { row, at: at.map(|at| at.max(state.now()).as_millis()) });
        Ok(())
    }

    fn read(&self) -> Result<()> {
        if self.shared.flaw == flaw::FROM_MEMORY {
            self.read.replace(flaw::remembered(self.shared.object));
            return Ok(());
        }
        let rows = self.shared.state.sql().exec("SELECT row FROM log", ())?;
        self.read.replace(rows.iter().map(|row| row.at(0)).collect::<Result<_, _>>()?);
        Ok(())
    }

    fn whom(&self, whom: Whom) -> Vec<SocketOf<S>> {
        match whom {
            Whom::All => self.shared.state.sockets().all(),
            Whom::Own => self.socket.iter().cloned().collect(),
        }
    }

    fn send(&self, whom: Whom) -> Result<()> {
        for socket in self.whom(whom) {
            let text = witness::number();
            let client = socket.attachment::<u32>()?.unwrap_or_default();
            if self.shared.flaw == flaw::NO_GATE {
                flaw::leak(self.shared.object, text);
            } else if socket.send(text.to_string()).is_err() {
                continue; // closed, or too slow
            }
            self.saw(What::Sends { client, text });
        }
        Ok(())
    }

    /// A call that is on its way.
    fn call(self: &Rc<Self>, to: u8, script: &Script) -> Result<impl Future<Output = ()> + use<S>> {
        let (call, script) = (witness::number(), witness::keep(script));
        let stub = self.shared.state.env().namespace("SCRIPTED")?.named(to.to_string())?;
        self.saw(What::Calls { call });
        let asked: Asked = (call, script, None);
        let answer = stub.fetch(ask(Request::new(Body::empty()), "/", &asked));
        let this = Rc::clone(self);
        Ok(async move {
            let answer = Answer::read(answer.await).await;
            this.saw(What::Answered { call, answer });
        })
    }

    fn part(self: &Rc<Self>, script: &Script) -> impl Future<Output = Result<()>> + use<S> {
        let (this, script) = (Rc::clone(self), script.clone());
        async move {
            let part = Run::begin(&this.shared, Job::Part(this.run), this.socket.clone());
            let result = play(&part, &script).await;
            part.end(if result.is_ok() { End::Well } else { End::Failed });
            result
        }
    }

    /// Whether the turn ended in the step.
    async fn step(self: &Rc<Self>, step: &Step) -> Result<bool> {
        let state = &self.shared.state;
        match step {
            Step::Write(rows) => self.write(*rows).await.map(|()| false),
            Step::Undone => {
                self.undo();
                Ok(false)
            }
            Step::Read => self.read().map(|()| false),
            Step::Sleep(ms) => {
                state.sleep(Duration::from_millis(u64::from(*ms))).await;
                Ok(true)
            }
            Step::Call(to, script) => {
                self.call(*to, script)?.await;
                Ok(true)
            }
            Step::CallTwice(to, one, two) => {
                let calls = (self.call(*to, one)?, self.call(*to, two)?);
                calls.0.await;
                calls.1.await;
                Ok(true)
            }
            Step::SetAlarm(ms, fails, script) => {
                let mut script = script.clone();
                script.insert(0, Step::Sleep(u16::from(*fails))); // told apart from the rest by its place
                let at = state.now() + Duration::from_millis(u64::from(*ms));
                self.alarm(Some(at), Some(witness::keep(&script)))?;
                if self.shared.flaw == flaw::EARLY_ALARM {
                    let (scheduled, now) = (at.as_millis(), state.now().as_millis());
                    let early = Run::begin(&self.shared, Job::Alarm { scheduled, retry: 0, now }, None);
                    early.end(End::Well);
                }
                Ok(false)
            }
            Step::DeleteAlarm => self.alarm(None, None).map(|()| false),
            Step::Send(whom) => self.send(*whom).map(|()| false),
            Step::Close(whom) => {
                for socket in self.whom(*whom) {
                    socket.close(CloseFrame::new(CloseCode::new(4_001)?, "closed")?)?;
                }
                Ok(false)
            }
            Step::Reset => match state.reset("reset on purpose").await {},
            Step::Fail => Err(Failure::msg("failed on purpose")),
            Step::Panic => std::panic::resume_unwind(Box::new("panicked on purpose")), // without the hook's text
            Step::Gate(script) => {
                let _ = state.block_concurrency_while(self.part(script)).await;
                Ok(true)
            }
            Step::Background(script) => {
                let work = self.part(script);
                state.wait_until(async move { drop(work.await) });
                Ok(false)
            }
        }
    }
}

impl<S: ObjectState> Drop for Run<S> {
    fn drop(&mut self) {
        self.end(End::Cut);
    }
}

fn play<S: ObjectState>(run: &Rc<Run<S>>, script: &[Step]) -> impl Future<Output = Result<()>> + use<S> {
    let (run, script) = (Rc::clone(run), script.to_vec());
    let work: std::pin::Pin<Box<dyn Future<Output = Result<()>>>> = Box::pin(async move {
        for step in &script {
            let turned =
                run.step(step).await.map_err(|error| Failure::msg(format!("{}{error}", witness::OWN)))?;
            if turned {
                run.turned();
            }
        }
        Ok(())
    });
    work
}

/// Puts what is asked for into a request.
pub(crate) fn ask<T: serde::Serialize>(mut request: Request, path: &'static str, asked: &T) -> Request {
    let asked = serde_json::to_string(asked).unwrap();
    request.headers_mut().insert("x-asked", asked.parse().unwrap());
    *request.uri_mut() = format!("http://kit{path}").parse().unwrap();
    request
}

fn asked<T: serde::de::DeserializeOwned>(request: &Request) -> Result<T> {
    let asked = request.headers().get("x-asked").map_or(&b""[..], |value| value.as_bytes());
    Ok(serde_json::from_slice(asked)?)
}

impl<S: ObjectState, const FLAW: u8> Scripted<S, FLAW> {
    async fn message(&self, socket: SocketOf<S>, (client, number, script): (u32, u32, u32)) -> Result<()> {
        let run = Run::begin(&self.0, Job::Message(client, number), Some(socket));
        let result = play(&run, &witness::script(script)).await;
        run.end(if result.is_ok() { End::Well } else { End::Failed });
        result
    }
}

impl<S: ObjectState, const FLAW: u8> DurableObject<S> for Scripted<S, FLAW> {
    fn new(state: S) -> Result<Self> {
        let object = state.id().name().map_or(Ok(0), |name| name.as_str().parse())?;
        let instance = witness::number();
        state.sql().exec("CREATE TABLE IF NOT EXISTS log (row INTEGER NOT NULL, script INTEGER)", ())?;
        witness::saw(Seen { object, instance, run: 0, what: What::Constructed });
        Ok(Self(Rc::new(Shared { state, flaw: FLAW, object, instance, held: Cell::new(None) })))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let state = &self.0.state;
        match request.uri().path() {
            "/log" => {
                let rows = state.sql().exec("SELECT row FROM log", ())?;
                let rows: Vec<u32> = rows.iter().map(|row| row.at(0)).collect::<Result<_, _>>()?;
                let at = state.alarms().get().await?.map(Timestamp::as_millis);
                let sockets = state.sockets().all();
                let clients: Vec<u32> =
                    sockets.iter().filter_map(|of| of.attachment().ok().flatten()).collect();
                return Ok(reply::json(&(rows, at, clients))?);
            }
            "/relay" => {
                let text: u32 = asked(&request)?;
                for socket in state.sockets().all() {
                    socket.send(text.to_string())?;
                }
                return Ok(reply::text(""));
            }
            _ => {}
        }
        let (call, script, client): Asked = asked(&request)?;
        let accepted = match client {
            Some(client) => Some(state.sockets().accept(&request, Accept::new().attach(&client)?)?),
            None => None,
        };
        let (response, socket) = accepted.unzip();
        let run = Run::begin(&self.0, Job::Call(call), socket);
        let result = play(&run, &witness::script(script)).await;
        run.end(if result.is_ok() { End::Well } else { End::Failed });
        result?;
        match response {
            Some(response) => Ok(response),
            None => Ok(reply::json(&*run.read.borrow())?),
        }
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let state = &self.0.state;
        let (scheduled, retry) = (info.scheduled.as_millis(), info.retry_count);
        let run = Run::begin(&self.0, Job::Alarm { scheduled, retry, now: state.now().as_millis() }, None);
        let last = "SELECT script FROM log WHERE script IS NOT NULL ORDER BY rowid DESC LIMIT 1";
        let script = witness::script(state.sql().scalar(last, ())?.unwrap_or(u32::MAX));
        let mut result = match script.split_first() {
            Some((Step::Sleep(fails), _)) if retry < u32::from(*fails) => {
                Err(Failure::msg("failed on purpose"))
            }
            Some((_, script)) => play(&run, script).await,
            None => Ok(()),
        };
        match run.insert(None) {
            Ok(row) => {
                run.saw(What::Writes { row, turn: run.turn.get() });
                run.saw(What::AlarmEnds { row });
            }
            Err(error) => result = Err(error),
        }
        run.end(if result.is_ok() { End::Well } else { End::Failed });
        result
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<()> {
        let message: (u32, u32, u32) = message.parse_json()?;
        if FLAW == flaw::DISORDER {
            let Some(before) = self.0.held.replace(Some(message)) else { return Ok(()) };
            self.message(socket.clone(), message).await?;
            self.0.held.set(None);
            return self.message(socket, before).await;
        }
        if FLAW == flaw::TWICE {
            self.message(socket.clone(), message).await?;
        }
        self.message(socket, message).await
    }

    async fn websocket_close(&self, socket: SocketOf<S>, _: Close) -> Result<()> {
        if FLAW != flaw::DEAF {
            let client = socket.attachment()?.unwrap_or_default();
            Run::begin(&self.0, Job::Closed(client), None).end(End::Well);
        }
        Ok(())
    }

    async fn websocket_error(&self, socket: SocketOf<S>, _: Error) -> Result<()> {
        let client = socket.attachment()?.unwrap_or_default();
        Run::begin(&self.0, Job::Failed(client), None).end(End::Well);
        Ok(())
    }
}
