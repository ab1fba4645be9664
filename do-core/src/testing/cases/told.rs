//! What cases over instances share: how one is made to go, to fail, and to wait for a word of the case.

use crate::testing::{
    case::{Outcome, same},
    driver::Driver,
    lab::Lab,
    thrown::Thrown,
};
use serde_json::{Value, json};
use std::time::Duration;

/// In which something that is not to come would have come.
pub(super) const A_WHILE: Duration = Duration::from_millis(300);
/// In which something that is to come has come.
pub(super) const SOON: Duration = Duration::from_secs(10);

/// Lets the next event construct.
pub(super) async fn gone<D: Driver>(lab: &Lab<D>, object: &str) -> Outcome {
    lab.thrown(object, json!([{"reset": "to be constructed again"}])).await.map(drop)
}

/// The kind and the text of a reset, which may have taken effect.
pub(super) fn is_reset(thrown: &Thrown, text: &str) -> Outcome {
    let seen = (thrown.kind.as_str(), thrown.message.as_str());
    same(&format!("{thrown:?}"), seen, ("Reset", text))?;
    let flags = (thrown.remote, thrown.retryable, thrown.overloaded, thrown.indefinite);
    same(
        &format!("remote, retryable, overloaded, indefinite of {thrown:?}"),
        flags,
        (true, true, false, true),
    )
}

/// Makes the object's constructor run these steps and fail so many times, with another text each time.
pub(super) async fn fails<D: Driver>(lab: &Lab<D>, object: &str, times: u32, steps: Value) -> Outcome {
    let mut steps = steps.as_array().cloned().unwrap_or_default();
    steps.push(json!({"life": {"fail_times": times}}));
    lab.run(object, json!([{"on_new": steps}])).await?;
    gone(lab, object).await
}

/// Steps that go on when the case [tells](go_on) the other object so.
pub(super) fn until_told<D: Driver>(lab: &Lab<D>, by: &str) -> Value {
    json!({"call": [lab.name(by), [{"add": 1}, {"wait_for": 1_000}]]})
}

/// Returns when those steps have begun.
pub(super) async fn waits<D: Driver>(lab: &Lab<D>, by: &str) -> Outcome {
    lab.begun(by, 1).await
}

pub(super) async fn go_on<D: Driver>(lab: &Lab<D>, by: &str) -> Outcome {
    lab.run(by, json!([{"add": 1_000}])).await?;
    lab.advance(A_WHILE).await
}
