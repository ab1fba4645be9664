use crate::{Error, ErrorKind, ObjectId, ObjectName, Request, Response};
use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

/// All objects of one class.
pub trait Namespace: Clone + Send + Sync + 'static {
    /// The handle to one object.
    type Stub: Stub;

    /// The id of the object with a name: always the same one (rule A1).
    ///
    /// # Errors
    /// Faults of the platform; natively none.
    fn id_of(&self, name: &ObjectName) -> Result<ObjectId, Error>;

    /// Reads an id from its 64 hex digits. It has no name (rule A4).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is malformed or of another namespace (rule A5).
    fn parse_id(&self, text: &str) -> Result<ObjectId, Error>;

    /// A new id, without a name, that nobody else has (rule A3).
    ///
    /// # Errors
    /// [`ErrorKind::Platform`] when the system has no randomness.
    fn unique_id(&self) -> Result<ObjectId, Error>;

    /// A handle to the object with an id. Does not construct the object (rule A11).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the id is of another namespace.
    fn get(&self, id: &ObjectId) -> Result<Self::Stub, Error>;

    /// A handle to the object with a name.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when the name is too long.
    fn named(&self, name: impl TryInto<ObjectName, Error: Into<Error>>) -> Result<Self::Stub, Error> {
        self.get(&self.id_of(&name.try_into().map_err(Into::into)?)?)
    }
}

/// A handle to one object, from anywhere: `Send`, cheap to clone. It survives resets of the object.
pub trait Stub: Clone + Send + Sync + 'static {
    /// The object's id.
    fn id(&self) -> &ObjectId;

    /// Sends a request. Calls made on one stub arrive in the order of the calls (rule A13), not of the awaits:
    /// the request leaves when `fetch` is called.
    ///
    /// # Errors
    /// [`ErrorKind::Application`] when the handler failed, [`ErrorKind::Reset`] when the object was reset
    /// meanwhile, [`ErrorKind::Overloaded`] when too much waits for it, [`ErrorKind::Shutdown`].
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the handler (rule B16), and until that has answered the call keeps the
    /// object that made it in memory (rule B3).
    fn fetch(&self, request: Request) -> impl Future<Output = Result<Response, Error>> + Send + use<Self>;

    /// A timer of the caller's host, so that a caller without an object can wait.
    fn delay(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<Self>;

    /// A random number of the caller's host, for keys and jitter of a caller without an object, who has no
    /// [`ObjectState::random`](crate::ObjectState::random). In the kit the seed decides it.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`] when the system has no randomness.
    fn random(&self) -> Result<u64, Error>;

    /// [`fetch`](Self::fetch), given up after `limit`.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch), and [`ErrorKind::Deadline`]: the handler may still run to its end.
    fn fetch_within(
        &self,
        limit: Duration,
        request: Request,
    ) -> impl Future<Output = Result<Response, Error>> + Send + use<Self> {
        let call = self.within(limit, self.fetch(request));
        async move { call.await? }
    }

    /// What `work` gives, unless it takes longer than `limit`: for anything that a caller without an object waits
    /// for, such as the body of a client that sends slowly.
    ///
    /// # Errors
    /// [`ErrorKind::Deadline`]; then `work` was dropped.
    fn within<F>(
        &self,
        limit: Duration,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Error>> + Send + use<Self, F>
    where
        F: Future + Send,
    {
        let timer = self.delay(limit);
        async move {
            let (mut work, mut timer) = (pin!(work), pin!(timer));
            poll_fn(move |cx| {
                if let Poll::Ready(value) = work.as_mut().poll(cx) {
                    return Poll::Ready(Ok(value));
                }
                let late = || Err(Error::new(ErrorKind::Deadline, format!("no answer within {limit:?}")));
                timer.as_mut().poll(cx).map(|()| late())
            })
            .await
        }
    }
}
