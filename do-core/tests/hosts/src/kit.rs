//! The test kit: objects in one thread, virtual time, no wire.

use crate::{
    Suite,
    runner::{InProcess, case_name, no_deployments},
};
use bytes::Bytes;
use do_core::{
    Body, Message, Request, Response,
    kit::{self, Kit},
    testing::{
        Case, Client, Deployment, Driver, Exchange, Fault, Head, HostKind, Lab, Leave, Opened, Outcome,
        PanicCost, Piece, Received,
    },
};
use http::header;
use http_body_util::BodyExt;
use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    marker::PhantomData,
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

/// Most bytes of an answer.
const MOST: usize = 64 * 1_024 * 1_024;

/// How often one looks again, after everything came to rest, whether another part of the case moves the clock.
const LOOKS: usize = 200;

/// A world for each case.
pub(crate) struct Worlds<S>(PhantomData<fn() -> S>);

impl<S: Suite> Worlds<S> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S: Suite> InProcess for Worlds<S> {
    type Driver = InKit<S>;

    fn name(&self) -> &'static str {
        "kit"
    }

    fn kind(&self) -> HostKind {
        HostKind::Kit
    }

    fn panic_cost(&self) -> PanicCost {
        PanicCost::Object
    }

    fn run_case(&self, number: usize, case: &Case<InKit<S>>) -> Outcome {
        let driver = InKit::new()?;
        let kit = driver.kit.clone();
        let lab = Lab::new(driver, case_name("kit", number));
        kit.run(case.run(&lab))
    }
}

/// One world.
pub(crate) struct InKit<S> {
    kit: Kit,
    crashes: Cell<u32>,
    suite: PhantomData<fn() -> S>,
}

impl<S: Suite> InKit<S> {
    /// With the seed of the variable `DO_KIT_SEED`: the cases hold with any.
    fn new() -> Result<Self, Fault> {
        let kit = Self::builder(Deployment::First).start()?;
        Ok(Self { kit, crashes: Cell::new(0), suite: PhantomData })
    }

    fn builder(deployment: Deployment) -> kit::Builder {
        S::kit(Kit::builder().local_sql_limits(), deployment)
    }
}

/// As a server would make it of what came over a network.
fn request(head: Head, body: Body) -> Result<Request, Fault> {
    let (mut head, ()) = head.into_parts();
    if head.uri.authority().is_none() {
        head.uri = format!("http://kit{}", head.uri).parse()?;
    }
    head.headers.entry(header::HOST).or_insert(header::HeaderValue::from_static("kit"));
    Ok(Request::from_parts(head, body))
}

/// Waits for something that arrives without the clock, or with a clock that another part of the case moves.
async fn arrives<T>(kit: &Kit, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, Fault> {
    for _ in 0..LOOKS {
        if let Some(there) = look() {
            return Ok(there);
        }
        kit.settle().await;
    }
    look().ok_or_else(|| Fault::new(format!("{what}: nothing came, and nothing is left to happen")))
}

impl<S: Suite> Driver for InKit<S> {
    type Client = Peer;
    type Exchange = Talk;

    fn kind(&self) -> HostKind {
        HostKind::Kit
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
        let before = self.crashes.get();
        let mut head = Head::new(());
        *head.method_mut() = http::Method::POST;
        *head.uri_mut() = path.parse()?;
        let response = self.kit.serve(S::route, request(head, body.into())?).await;
        if self.crashes.get() != before {
            return Err(Fault::new("the process ended"));
        }
        Ok((response.status().as_u16(), response.into_body().bytes(MOST).await?.into()))
    }

    async fn begin(&self, head: Head) -> Result<Talk, Fault> {
        Talk::begin::<S>(&self.kit, head)
    }

    async fn open(&self, path: &str) -> Result<Opened<Peer>, Fault> {
        let (request, opening) = self.kit.handshake(path)?;
        let response = self.kit.serve(S::route, request).await;
        Ok(match opening.open(response) {
            Ok(client) => {
                client.answers_closes(false);
                Opened::Client(Peer { kit: self.kit.clone(), client })
            }
            Err(refusal) => {
                let status = refusal.status().as_u16();
                Opened::Refused(status, refusal.into_body().bytes(MOST).await?.into())
            }
        })
    }

    async fn advance(&self, by: Duration) -> Outcome {
        self.kit.advance(by).await;
        Ok(())
    }

    async fn evict(&self) -> Outcome {
        let _ = self.kit.hibernate_all().await; // what has work stays
        Ok(())
    }

    fn eviction_takes(&self) -> Duration {
        Duration::ZERO
    }

    async fn crash(&self) -> Outcome {
        self.crashes.set(self.crashes.get() + 1);
        self.kit.crash();
        Ok(())
    }

    async fn deploy(&self, deployment: Deployment) -> Outcome {
        if !S::DEPLOYS {
            return Err(no_deployments());
        }
        self.crashes.set(self.crashes.get() + 1);
        Ok(self.kit.deploy(Self::builder(deployment))?)
    }

    fn panic_cost(&self) -> PanicCost {
        PanicCost::Object
    }
}

/// A WebSocket that answers nothing by itself.
pub(crate) struct Peer {
    kit: Kit,
    client: kit::Client,
}

impl Client for Peer {
    fn protocol(&self) -> Option<&str> {
        self.client.protocol()
    }

    async fn send(&mut self, message: Message) -> Outcome {
        Ok(self.client.send(message)?)
    }

    async fn close(&mut self, how: Option<(u16, &str)>) -> Outcome {
        Ok(self.client.close(how)?)
    }

    async fn frame(&mut self, _first: u8, _payload: &[u8]) -> Outcome {
        Err(Fault::new("the kit carries messages, not frames"))
    }

    async fn receive(&mut self) -> Result<Received, Fault> {
        arrives(&self.kit, "receiving", || self.client.try_receive()).await
    }

    fn lose(self) {
        self.client.lose();
    }
}

/// One request and its answer, without HTTP in between.
pub(crate) struct Talk {
    kit: Kit,
    upload: Option<Upload>,
    answer: Rc<RefCell<Option<Response>>>,
    body: Option<Body>,
    rest: Bytes,
}

/// The client's half of a request's body.
struct Upload {
    sender: do_core::BodySender,
    complete: Arc<AtomicBool>,
}

/// The body of a request, which is whole only when the client said so.
struct Uploaded {
    inner: Body,
    complete: Arc<AtomicBool>,
    /// Bytes that are to come, where the head says.
    length: Option<u64>,
}

impl http_body::Body for Uploaded {
    type Data = Bytes;
    type Error = do_core::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, do_core::Error>>> {
        if self.length == Some(0) {
            return Poll::Ready(None);
        }
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let came = frame.data_ref().map_or(0, Bytes::len) as u64;
                self.length = self.length.map(|left| left.saturating_sub(came));
                Poll::Ready(Some(Ok(http_body::Frame::data(frame.data_ref().cloned().unwrap_or_default()))))
            }
            None if !self.complete.load(Ordering::Acquire) => {
                let error = do_core::Error::new(do_core::ErrorKind::Transient, "the client left");
                Poll::Ready(Some(Err(error)))
            }
            _ => Poll::Ready(frame),
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.length.map_or_else(http_body::SizeHint::default, http_body::SizeHint::with_exact)
    }
}

impl Talk {
    fn begin<S: Suite>(kit: &Kit, head: Head) -> Result<Self, Fault> {
        let length = head.headers().get(header::CONTENT_LENGTH);
        let length: Option<u64> =
            length.map(|value| value.to_str()?.parse().map_err(Fault::from)).transpose()?;
        let has_body = head.method() != http::Method::GET && head.method() != http::Method::HEAD;
        let (upload, body) = if has_body {
            let (sender, inner) = Body::channel(MOST);
            let complete = Arc::new(AtomicBool::new(false));
            let uploaded = Uploaded { inner, complete: Arc::clone(&complete), length };
            (Some(Upload { sender, complete }), Body::from_http(uploaded))
        } else {
            (None, Body::empty())
        };
        let request = request(head, body)?;
        let answer = Rc::new(RefCell::new(None));
        let (serving, slot) = (kit.clone(), Rc::downgrade(&answer));
        drop(kit.spawn(async move {
            // As a server drops the work for a client that left; the object's own goes on (rule B16).
            let mut served = pin!(serving.serve(S::route, request));
            let response = poll_fn(|cx| match slot.strong_count() {
                0 => Poll::Ready(None),
                _ => served.as_mut().poll(cx).map(Some),
            });
            if let (Some(response), Some(slot)) = (response.await, slot.upgrade()) {
                *slot.borrow_mut() = Some(response);
            }
        }));
        Ok(Self { kit: kit.clone(), upload, answer, body: None, rest: Bytes::new() })
    }
}

impl Exchange for Talk {
    async fn send(&mut self, piece: &[u8]) -> Outcome {
        let upload = self.upload.as_ref().ok_or_else(|| Fault::new("the request has no body"))?;
        let _ = upload.sender.try_send(piece.to_vec()); // a body that nobody reads is nobody's fault
        Ok(())
    }

    async fn finish(&mut self) -> Outcome {
        if let Some(upload) = self.upload.take() {
            upload.complete.store(true, Ordering::Release);
        }
        Ok(())
    }

    async fn head(&mut self) -> Result<http::Response<()>, Fault> {
        let answer = Rc::clone(&self.answer);
        let response = arrives(&self.kit, "the response's head", || answer.borrow_mut().take()).await?;
        let (head, body) = response.into_parts();
        let mut told = http::Response::from_parts(head, ());
        // As the server of HTTP says it.
        let length = http_body::Body::size_hint(&body).exact();
        if let (Some(length), true) = (length, !matches!(told.status().as_u16(), 204 | 304)) {
            told.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
        }
        self.body = Some(body);
        Ok(told)
    }

    async fn read(&mut self, most: usize) -> Result<Piece, Fault> {
        if self.rest.is_empty() {
            let kit = self.kit.clone();
            let body = self.body.as_mut().ok_or_else(|| Fault::new("the head was not read"))?;
            let waker = std::task::Waker::noop();
            let frame = arrives(&kit, "the response's body", || {
                match Pin::new(&mut body.frame()).poll(&mut Context::from_waker(waker)) {
                    Poll::Ready(frame) => Some(frame),
                    Poll::Pending => None,
                }
            });
            match frame.await? {
                None => return Ok(Piece::End),
                Some(Err(_)) => return Ok(Piece::Lost),
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
            }
        }
        Ok(Piece::Bytes(self.rest.split_to(most.min(self.rest.len())).to_vec()))
    }

    async fn half_close(&mut self) -> Outcome {
        self.upload = None;
        Ok(())
    }

    fn leave(self, _how: Leave) {}
}
