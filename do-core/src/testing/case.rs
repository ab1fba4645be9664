use super::{
    difference::HostKind,
    driver::{Driver, PanicCost},
    lab::Lab,
    tasks::Local,
};
use serde::Serialize;
use std::fmt;

/// The id of the [`Difference`](super::Difference) in what a panic costs, which a [`Driver`] says of itself.
const PANIC: &str = "panic";

/// How a case ended.
pub type Outcome = Result<(), Fault>;

/// A case that runs.
pub type Run<'a> = Local<'a, Outcome>;

/// One rule, or a few that can only be seen together.
pub struct Case<D: Driver> {
    /// Begins with the numbers of the rules: `"d1 eleven tags are an error"`.
    pub name: &'static str,
    /// What it does to the host.
    pub needs: Needs,
    run: for<'a> fn(&'a Lab<D>) -> Run<'a>,
}

impl<D: Driver> Case<D> {
    /// A case of this name, which disturbs nobody and holds on every host.
    ///
    /// ```
    /// # use do_core::testing::{Case, Driver, Lab, Outcome, same};
    /// # fn cases<D: Driver>() -> Vec<Case<D>> {
    /// vec![Case::new("r1 whatever is no upgrade is not found", |lab| Box::pin(r1(lab)))]
    /// # }
    /// async fn r1<D: Driver>(lab: &Lab<D>) -> Outcome {
    ///     let (status, _) = lab.driver().post(&lab.address("/nothing", "a"), Vec::new()).await?;
    ///     same("the status", status, 404)
    /// }
    /// ```
    pub fn new(name: &'static str, run: for<'a> fn(&'a Lab<D>) -> Run<'a>) -> Self {
        Self { name, needs: Needs::default(), run }
    }

    /// It makes all objects leave memory.
    #[must_use]
    pub fn evicts(mut self) -> Self {
        self.needs.evicts = true;
        self
    }

    /// It kills the host.
    #[must_use]
    pub fn crashes(mut self) -> Self {
        self.needs.crashes = true;
        self
    }

    /// It takes more than 15 s of the objects' time.
    #[must_use]
    pub fn long(mut self) -> Self {
        self.needs.long = true;
        self
    }

    /// It panics in an object, and holds where a panic costs this.
    #[must_use]
    pub fn panics(mut self, cost: PanicCost) -> Self {
        self.needs.panics = Some(cost);
        self
    }

    /// It holds on these hosts only, for the reason of the [`Difference`](super::Difference) with this id.
    #[must_use]
    pub fn differs(mut self, hosts: &'static [HostKind], difference: &'static str) -> Self {
        self.needs.only = Some(Only { hosts, difference });
        self
    }

    /// It holds on every host, in the way in which the [`Difference`](super::Difference) with this id has it.
    #[must_use]
    pub fn shows(mut self, difference: &'static str) -> Self {
        self.needs.shows = Some(difference);
        self
    }

    /// Runs it against the host of the lab, of which it may be the only one (see [`Needs::is_alone`]).
    pub fn run<'a>(&self, lab: &'a Lab<D>) -> Run<'a> {
        (self.run)(lab)
    }
}

impl<D: Driver> fmt::Debug for Case<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// What a case does to its host, so that a runner knows which can share one and which to leave out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// It makes all objects leave memory.
    pub evicts: bool,
    /// It kills the host.
    pub crashes: bool,
    /// It takes more than 15 s of the objects' time.
    pub long: bool,
    /// It panics in an object, and holds where a panic costs this.
    pub panics: Option<PanicCost>,
    /// It holds on some hosts only.
    pub only: Option<Only>,
    /// It asks the host which side of the [`Difference`](super::Difference) with this id to hold it to.
    pub shows: Option<&'static str>,
}

/// On which hosts a case holds, and why not on the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Only {
    /// The hosts.
    pub hosts: &'static [HostKind],
    /// The id of the [`Difference`](super::Difference) that is the reason.
    pub difference: &'static str,
}

impl Needs {
    /// Whether it disturbs other cases on the same host. Those that do not only wait.
    pub fn is_alone(&self) -> bool {
        self.evicts || self.crashes || self.panics.is_some()
    }

    /// Why it says nothing about a host of this kind, where a panic costs this: the id of the
    /// [`Difference`](super::Difference).
    pub fn unsuited(&self, host: HostKind, panics: PanicCost) -> Option<&'static str> {
        if let Some(only) = self.only
            && !only.hosts.contains(&host)
        {
            return Some(only.difference);
        }
        self.panics.filter(|cost| *cost != panics).map(|_| PANIC)
    }

    /// The ids of the [`Difference`](super::Difference)s that it shows.
    pub fn cites(&self) -> impl Iterator<Item = &'static str> + use<> {
        let panics = self.panics.map(|_| PANIC);
        [self.only.map(|only| only.difference), panics, self.shows].into_iter().flatten()
    }
}

/// Why a case failed.
///
/// Not a `std::error::Error`, so that `?` takes every one.
pub struct Fault(String);

impl Fault {
    /// A fault in words.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// The same with what was being done in front.
    #[must_use]
    pub fn during(self, what: &str) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails with both values unless they are equal as JSON, so that what an object gave and what was expected can be
/// compared whichever way each is held.
///
/// # Errors
/// They differ, or one of them is not expressible as JSON.
#[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
pub fn same(what: &str, got: impl Serialize, expected: impl Serialize) -> Outcome {
    let (got, expected) = (serde_json::to_value(got)?, serde_json::to_value(expected)?);
    if got == expected {
        return Ok(());
    }
    Err(Fault(format!("{what}: got {got}, expected {expected}")))
}

/// Fails with the words unless it holds.
///
/// # Errors
/// It does not hold.
pub fn holds(what: impl fmt::Display, it: bool) -> Outcome {
    if it { Ok(()) } else { Err(Fault(what.to_string())) }
}
