use crate::{Expiring, jobs};
use do_core::{Job, Plan, Schedule, prelude::*};
use do_sync::Room;
use serde_json::Value;

const REPORTS: &str = "CREATE TABLE reports (at INTEGER PRIMARY KEY, notes INTEGER NOT NULL)";
const LATEST: &str = "SELECT at, notes FROM reports ORDER BY at DESC LIMIT 100";

/// Keeps notes for as long as they are to live, beats for everyone connected, and reports on working days.
#[derive(Debug)]
pub struct Pulse<S: ObjectState> {
    state: S,
    schedule: Schedule<S>,
    notes: Expiring<S>,
}

impl<S: ObjectState> DurableObject<S> for Pulse<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(&[Expiring::<S>::TABLE, REPORTS])?;
        let seconds = state.env().var("BEAT_SECONDS").map_or(Ok(30), |text| text.parse())?;
        let schedule = Schedule::open(&state)?;
        schedule.declare("beat", Plan::every(Duration::from_secs(seconds))?)?; // writes nothing when it is there
        schedule.declare("report", Plan::cron("0 9 * * MON-FRI", "Europe/Zurich")?)?;
        Ok(Self { notes: Expiring::new(&state, schedule.slot("sweep")), state, schedule })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/") => jobs::list(&self.schedule),
            (&Method::GET, "/ws") => Ok(Room::all(&self.state).join(&request, Accept::new())?.0),
            (&Method::GET, "/notes") => Ok(reply::json(&self.notes.all()?)?),
            (&Method::POST, "/notes") => self.notes.add(request.into_body().json(4_096).await?).await,
            (&Method::GET, "/reports") => Ok(reply::json(&self.state.sql().query::<Value>(LATEST, ())?)?),
            (&Method::POST, "/replay") => jobs::replay(&self.schedule, request).await,
            _ => Ok(reply::status(StatusCode::NOT_FOUND)),
        }
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        self.schedule.run_due(info, async |job| self.run(&job).await).await
    }
}

impl<S: ObjectState> Pulse<S> {
    async fn run(&self, job: &Job) -> Result<()> {
        match job.name() {
            "beat" => {
                Room::all(&self.state).send_all(format!(r#"{{"beat":{}}}"#, job.scheduled()));
            }
            "sweep" => self.notes.sweep().await?,
            "report" => {
                let report = "INSERT INTO reports SELECT ?, count(*) FROM notes";
                self.state.sql().exec(report, (job.scheduled(),))?;
            }
            _ => job.unknown()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
