//! Object classes without their type: the one place of the engine that needs a `dyn`.

use super::core::Core;
use crate::{
    AlarmInfo, Close, DurableObject, Error, Failure, Message, ObjectState, Request, Response, SocketOf,
};
use std::{future::Future, pin::Pin, rc::Rc};

/// A future on the object's thread.
pub(crate) type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// An instance whose type is forgotten. Handlers own a share of it, so that they outlive no instance.
pub(super) trait Instance {
    fn fetch(self: Rc<Self>, request: Request) -> LocalFuture<Result<Response, Failure>>;
    fn alarm(self: Rc<Self>, info: AlarmInfo) -> LocalFuture<Result<(), Failure>>;
    fn message(self: Rc<Self>, socket: SocketSeed, message: Message) -> LocalFuture<Result<(), Failure>>;
    fn close(self: Rc<Self>, socket: SocketSeed, close: Close) -> LocalFuture<Result<(), Failure>>;
    fn error(self: Rc<Self>, socket: SocketSeed, error: Error) -> LocalFuture<Result<(), Failure>>;
}

/// What a state makes a socket handle of.
pub(crate) struct SocketSeed {
    pub(crate) core: Rc<Core>,
    pub(crate) cell: Rc<super::sockets::SocketCell>,
}

/// The state type of a driver, as far as the engine must make one.
pub(crate) trait DriverState: ObjectState {
    /// The handle of one socket.
    fn socket(seed: SocketSeed) -> SocketOf<Self>;
}

type Make = dyn Fn(Rc<Core>) -> Result<Rc<dyn Instance>, Failure>;

/// Makes instances of one class.
pub(crate) struct Class {
    make: Box<Make>,
}

impl Class {
    /// The class `O` over states that `state` makes.
    pub(crate) fn new<S, O>(state: impl Fn(Rc<Core>) -> S + 'static) -> Self
    where
        S: DriverState,
        O: DurableObject<S>,
    {
        let make = move |core| {
            let object = O::new(state(core))?;
            Ok(Rc::new(Typed { object, state: std::marker::PhantomData }) as Rc<dyn Instance>)
        };
        Self { make: Box::new(make) }
    }

    /// A class without a state, for tests of the engine.
    #[cfg(test)]
    pub(super) fn of(make: impl Fn(Rc<Core>) -> Rc<dyn Instance> + 'static) -> Self {
        Self { make: Box::new(move |core| Ok(make(core))) }
    }

    pub(super) fn make(&self, core: Rc<Core>) -> Result<Rc<dyn Instance>, Failure> {
        (self.make)(core)
    }
}

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Class")
    }
}

struct Typed<S, O> {
    object: O,
    state: std::marker::PhantomData<fn(S)>,
}

impl<S: DriverState, O: DurableObject<S>> Instance for Typed<S, O> {
    fn fetch(self: Rc<Self>, request: Request) -> LocalFuture<Result<Response, Failure>> {
        Box::pin(async move { self.object.fetch(request).await })
    }

    fn alarm(self: Rc<Self>, info: AlarmInfo) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move { self.object.alarm(info).await })
    }

    fn message(self: Rc<Self>, socket: SocketSeed, message: Message) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move { self.object.websocket_message(S::socket(socket), message).await })
    }

    fn close(self: Rc<Self>, socket: SocketSeed, close: Close) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move { self.object.websocket_close(S::socket(socket), close).await })
    }

    fn error(self: Rc<Self>, socket: SocketSeed, error: Error) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move { self.object.websocket_error(S::socket(socket), error).await })
    }
}
