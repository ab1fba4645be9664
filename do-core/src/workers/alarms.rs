//! The alarm slot.

use super::{error::caught, ext::Storage};
use crate::{AlarmScheduler, Error, Timestamp};
use std::{fmt, rc::Rc};
use wasm_bindgen_futures::JsFuture;

/// The [`AlarmScheduler`] of a Worker's object.
#[derive(Clone)]
pub struct WorkersAlarms(Rc<Storage>);

impl WorkersAlarms {
    pub(super) fn new(storage: Storage) -> Self {
        Self(Rc::new(storage))
    }
}

impl fmt::Debug for WorkersAlarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkersAlarms")
    }
}

impl AlarmScheduler for WorkersAlarms {
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<> {
        #[allow(clippy::cast_precision_loss)] // exact: times of alarms are far below 2^53
        let set = || self.0.set_alarm(at.as_millis() as f64).map(JsFuture::from).map_err(|e| caught(&e));
        let set = at.check_alarm().and_then(|()| set());
        async move { set?.await.map(drop).map_err(|e| caught(&e)) }
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        let got =
            JsFuture::from(self.0.get_alarm().map_err(|e| caught(&e))?).await.map_err(|e| caught(&e))?;
        #[allow(clippy::cast_possible_truncation)] // whole milliseconds, as they were set
        Ok(got.as_f64().map(|ms| Timestamp::from_millis(ms as i64)))
    }

    async fn delete(&self) -> Result<(), Error> {
        let deleted = self.0.delete_alarm().map_err(|e| caught(&e))?;
        JsFuture::from(deleted).await.map(drop).map_err(|e| caught(&e))
    }
}
