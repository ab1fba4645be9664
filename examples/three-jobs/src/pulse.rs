use crate::{Expiring, jobs, reports};
use do_core::prelude::*;
use do_sync::Room;

/// Keeps notes for as long as they are to live, beats for everyone connected, and reports on working days.
#[derive(Debug)]
pub struct Pulse<S: ObjectState> {
    state: S,
    schedule: Schedule<S>,
    notes: Expiring<S>,
}

impl<S: ObjectState> DurableObject<S> for Pulse<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(&[Expiring::<S>::TABLE, reports::TABLE])?;
        let seconds = state.env().var("BEAT_SECONDS")?.parse()?;
        let schedule = Schedule::open(&state)?;
        // What is declared already is left as it is, and nothing is written.
        schedule.declare("beat", Plan::every(Duration::from_secs(seconds))?)?;
        schedule.declare("report", Plan::cron("0 9 * * MON-FRI", "Europe/Zurich")?)?;
        Ok(Self { notes: Expiring::new(&state, schedule.slot("sweep")), state, schedule })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        Ok(match (request.method().as_str(), request.uri().path()) {
            ("GET", "/ws") => Room::all(&self.state).join(&request, Accept::new())?.0,
            ("GET", "/notes") => reply::json(&self.notes.all()?)?,
            ("POST", "/notes") => reply::json(&self.notes.add(request.into_body().json(999).await?).await?)?,
            ("GET", "/reports") => reply::json(&reports::latest(&self.state)?)?,
            _ => jobs::answer(&self.schedule, request).await?,
        })
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job: Job| match job.name() {
            "beat" => {
                Room::all(&self.state).send_all(format!(r#"{{"beat":{}}}"#, job.scheduled()));
                Ok(())
            }
            "sweep" => self.notes.sweep().await,
            "report" => reports::add(&self.state, job.scheduled()),
            _ => job.unknown(),
        };
        self.schedule.run_due(info, run).await
    }
}

#[cfg(test)]
mod tests;
