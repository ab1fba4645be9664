use crate::invite::{self, Invite};
use do_core::{Keys, prelude::*};
use do_ttl::{OnFull, Settings, Sweeper, Ttl, Typed};

/// The invite codes of one event: whoever brings one in time is let in, and nobody else with the same.
#[derive(Debug)]
pub struct Invites<S: ObjectState>(Typed<S, Invite>);

impl<S: ObjectState> DurableObject<S> for Invites<S> {
    fn new(state: S) -> Result<Self> {
        let settings = Settings::new().max_entries(10_000).on_full(OnFull::Refuse);
        Ok(Self(Sweeper::new(&state, Alarm::raw(&state)).store("codes", settings)?.typed()))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let code = request.uri().path().splitn(5, '/').nth(4).unwrap_or_default().to_owned();
        let (method, ttl, after) = (request.method().clone(), invite::ttl(&request)?, request.query("after"));
        let text = request.into_body().text(200).await?;
        // From here on it is one turn: of those who bring a code at the same time, one comes first.
        if method == Method::GET && code.is_empty() {
            return invite::listed(self.0.list(Keys::all().resume(&after.unwrap_or_default()))?);
        }
        let put = |invite, ttl| self.0.put(&code, &invite, ttl).map_err(Error::of_request);
        let status = match (method.as_str(), self.0.get(&code)?) {
            ("POST", _) if text.trim().is_empty() => StatusCode::BAD_REQUEST,
            ("PUT", None) => put(Invite::new(text), ttl).map(|_| StatusCode::CREATED)?,
            ("POST", Some(invite)) if invite.guest.is_none() => {
                put(invite.of(text), Ttl::secs(30 * 86_400)).map(|_| StatusCode::OK)?
            }
            // Whose answer was lost asks again.
            ("POST", Some(invite)) if invite.guest == Some(text) => StatusCode::OK,
            ("DELETE", Some(invite)) if invite.guest.is_none() => {
                self.0.remove(&code).map(|_| StatusCode::NO_CONTENT)?
            }
            ("PUT" | "POST" | "DELETE", Some(_)) => StatusCode::CONFLICT,
            _ => StatusCode::NOT_FOUND,
        };
        Ok(reply::status(status))
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.0.store().sweeper().on_alarm().await?)
    }
}

#[cfg(test)]
mod tests;
