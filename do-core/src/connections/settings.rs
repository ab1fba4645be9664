//! What a registry is told when it is made.

use super::{Admission, Connection, Connections, Origins, Refusal};
use crate::{ObjectState, Request};
use std::rc::Rc;

pub(super) type Admit = dyn Fn(&Request) -> Result<Admission, Refusal>;
pub(super) type Hook<S> = dyn Fn(&Connection<'_, S>);

pub(super) struct Settings<S: ObjectState> {
    pub(super) max: Option<usize>,
    pub(super) max_per_key: Option<usize>,
    pub(super) origins: Option<Origins>,
    pub(super) admit: Option<Rc<Admit>>,
    pub(super) on_join: Option<Rc<Hook<S>>>,
    pub(super) on_leave: Option<Rc<Hook<S>>>,
}

/// Not derived, because states need no default.
impl<S: ObjectState> Default for Settings<S> {
    fn default() -> Self {
        Self { max: None, max_per_key: None, origins: None, admit: None, on_join: None, on_leave: None }
    }
}

/// Not derived, because states need not be cloned for it.
impl<S: ObjectState> Clone for Settings<S> {
    fn clone(&self) -> Self {
        Self {
            max: self.max,
            max_per_key: self.max_per_key,
            origins: self.origins.clone(),
            admit: self.admit.clone(),
            on_join: self.on_join.clone(),
            on_leave: self.on_leave.clone(),
        }
    }
}

impl<S: ObjectState> Connections<S> {
    /// A registry with other settings, and with a memory of its own.
    fn with(self, change: impl FnOnce(&mut Settings<S>)) -> Self {
        let mut settings = self.0.settings.clone();
        change(&mut settings);
        Self::make(self.0.state.clone(), settings)
    }

    /// At most so many connections: open sockets of the object and streams together. Whoever comes then is refused with
    /// [`Refusal::Full`].
    #[must_use]
    pub fn max(self, most: usize) -> Self {
        self.with(|settings| settings.max = Some(most))
    }

    /// At most so many connections with the same key. One more is refused with [`Refusal::TooMany`]: there is a place, but
    /// not for them. For somebody anonymous this says nothing.
    #[must_use]
    pub fn max_per_key(self, most: usize) -> Self {
        self.with(|settings| settings.max_per_key = Some(most))
    }

    /// From which pages browsers may come; others are refused with [`Refusal::Forbidden`]. Without it, from all.
    #[must_use]
    pub fn origins(self, origins: Origins) -> Self {
        self.with(|settings| settings.origins = Some(origins))
    }

    /// Says who somebody is, or refuses them, before anything is accepted. Without it everybody is anonymous.
    ///
    /// It may be asked more than once about one request, so it must not use up what it finds there. What has to be awaited,
    /// or is good for one time only, is looked at by the handler before: it puts what it found into the request's
    /// `extensions`, and this reads it there.
    #[must_use]
    pub fn admit(self, admit: impl Fn(&Request) -> Result<Admission, Refusal> + 'static) -> Self {
        self.with(|settings| settings.admit = Some(Rc::new(admit)))
    }

    /// Is told of every connection that was accepted. In place of the one before.
    #[must_use]
    pub fn on_join(self, hook: impl Fn(&Connection<'_, S>) + 'static) -> Self {
        self.with(|settings| settings.on_join = Some(Rc::new(hook)))
    }

    /// Is told of every connection that is gone. In place of the one before.
    #[must_use]
    pub fn on_leave(self, hook: impl Fn(&Connection<'_, S>) + 'static) -> Self {
        self.with(|settings| settings.on_leave = Some(Rc::new(hook)))
    }
}
