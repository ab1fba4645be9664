use do_core::prelude::*;
use do_ttl::{Page, Ttl};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::num::NonZeroU32;

/// What is kept under a code.
#[derive(Debug, Serialize, Deserialize)]
pub struct Invite {
    /// Who it is meant for.
    pub(crate) note: String,
    /// Who came with it.
    pub(crate) guest: Option<String>,
}

impl Invite {
    pub(crate) fn new(note: String) -> Self {
        Self { note, guest: None }
    }

    pub(crate) fn of(self, guest: String) -> Self {
        Self { guest: Some(guest), ..self }
    }
}

/// How long a code is good: `?minutes=60`, a day without it.
pub(crate) fn ttl(request: &Request) -> Result<Ttl, Error> {
    let minutes = request.query("minutes").unwrap_or_else(|| "1440".to_owned()).parse::<NonZeroU32>();
    let minutes = minutes
        .map_err(|error| Error::new(ErrorKind::Invalid, format!("`minutes`: {error}")).of_request())?;
    Ok(Ttl::secs(60 * i64::from(minutes.get())))
}

/// A page of codes as JSON.
pub(crate) fn listed(page: Page<Invite>) -> Result<Response> {
    let code = |(code, entry): (String, do_ttl::Entry<Invite>)| {
        let Invite { note, guest } = entry.value;
        json!({ "code": code, "note": note, "guest": guest, "expires": entry.expires })
    };
    let codes: Vec<_> = page.entries.into_iter().map(code).collect();
    Ok(reply::json(&json!({ "codes": codes, "next": page.next }))?)
}
