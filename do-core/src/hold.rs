/// For patterns that send by ways of their own, such as a response body that they write themselves: lets something that
/// is sent now wait for the turn's commit, as every output of an object does (rule C4).
///
/// True when it has to wait: then `leave` is called once what this turn has written is durable, behind what was held
/// before. When that commit fails, the object is reset and `leave` is dropped uncalled. False when there is nothing to
/// wait for; `leave` is dropped, and the output may leave at once: outside of objects, and where the host holds response
/// bodies by itself, as Workers do.
///
/// Cheap: one call may stand for any number of outputs of a turn.
#[must_use]
pub fn hold_output(leave: impl FnOnce() + 'static) -> bool {
    hold(leave)
}

#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
fn hold(leave: impl FnOnce() + 'static) -> bool {
    crate::engine::hold_output(leave)
}

#[cfg(not(all(feature = "tokio", not(target_arch = "wasm32"))))]
fn hold(_leave: impl FnOnce() + 'static) -> bool {
    false
}
