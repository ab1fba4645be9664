//! Whether a history of concurrent calls could have come from calls one after another (Wing and Gong): an order is
//! looked for that keeps to the times of the calls, in which each answer is the right one.

use std::{collections::HashSet, fmt::Debug, hash::Hash};

/// A call of a client.
#[derive(Debug, Clone)]
pub(super) struct Call<O, R> {
    pub(super) client: usize,
    pub(super) op: O,
    /// When it was made and when its answer came, on a clock that ticks with every such event.
    pub(super) invoked: u64,
    pub(super) answered: u64,
    /// The same on the world's clock, in ms.
    pub(super) from: i64,
    pub(super) to: i64,
    /// `None`: it may have taken effect, at any time from when it was made, or not.
    pub(super) result: Option<R>,
}

/// What one object is to do.
pub(super) trait Model {
    type Op: Debug;
    type Answer: Debug;
    type State: Clone + Eq + Hash + Debug;

    fn begin(&self) -> Self::State;

    /// The states in which it can be after that call, if that is its answer.
    fn after(&self, state: &Self::State, call: &Call<Self::Op, Self::Answer>) -> Vec<Self::State>;
}

/// What is wrong with a history.
pub(super) fn complaint<M: Model>(model: &M, calls: &[Call<M::Op, M::Answer>]) -> Option<String> {
    assert!(calls.len() <= 64, "too many calls for one mask");
    let must = (0..calls.len()).filter(|n| calls[*n].result.is_some()).fold(0, |mask, n| mask | (1_u64 << n));
    let mut seen = HashSet::new();
    let mut open = vec![(0_u64, model.begin())];
    let mut furthest = 0;
    while let Some((done, state)) = open.pop() {
        if done & must == must {
            return None;
        }
        if !seen.insert((done, state.clone())) {
            continue;
        }
        furthest = furthest.max(done.count_ones());
        // Whatever was answered first must come before whatever was made after that.
        let left = |n: &usize| done & (1 << n) == 0;
        let first = (0..calls.len()).filter(left).filter(|n| calls[*n].result.is_some());
        let horizon = first.map(|n| calls[n].answered).min().unwrap_or(u64::MAX);
        for n in (0..calls.len()).filter(left).filter(|n| calls[*n].invoked <= horizon) {
            open.extend(model.after(&state, &calls[n]).into_iter().map(|after| (done | (1 << n), after)));
        }
    }
    let calls: String = calls.iter().map(|call| format!("client {}: {call:?}\n", call.client)).collect();
    Some(format!("no order explains more than {furthest} of these calls:\n{calls}"))
}
