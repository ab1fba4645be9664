//! A host with one class, whose handlers each test writes as [`Hooks`], and a client that sees every byte.

use do_core::{
    prelude::*,
    tokio::{Builder, Host, HostEnv, HostNamespace, HostSocket, HostState, ManualClock},
};
use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    marker::PhantomData,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
};
use tokio_tungstenite::{WebSocketStream, tungstenite};

/// Awaits what a real connection or thread does, with a limit that only a fault reaches.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("nothing happened within 10 s")
}

/// What a test wants its object to do. The defaults accept with the tags and the attachment of the query, echo
/// messages, and write everything down.
#[allow(async_fn_in_trait)]
pub(crate) trait Hooks: Sized + 'static {
    fn begin(_probe: &Probe<Self>) -> Result<()> {
        Ok(())
    }

    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        probe.accept(&request)
    }

    async fn alarm(_probe: &Probe<Self>) -> Result<()> {
        Ok(())
    }

    async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
        probe.log(format!("message {}", show(&message)));
        Ok(socket.send(message)?)
    }

    async fn close(probe: &Probe<Self>, _socket: HostSocket, close: Close) -> Result<()> {
        probe.log(closed(&close));
        Ok(())
    }

    async fn error(probe: &Probe<Self>, _socket: HostSocket, error: Error) -> Result<()> {
        probe.log(format!("error {error}"));
        Ok(())
    }
}

/// The defaults.
pub(crate) struct Plain;
impl Hooks for Plain {}

pub(crate) fn show(message: &Message) -> String {
    match message {
        Message::Text(text) if text.len() > 100 => format!("text of {} bytes", text.len()),
        Message::Text(text) => format!("{text:?}"),
        Message::Binary(bytes) => format!("binary of {} bytes", bytes.len()),
    }
}

pub(crate) fn closed(close: &Close) -> String {
    format!("close {} {:?} {}", close.code, close.reason, if close.was_clean { "clean" } else { "lost" })
}

/// What the object logs when the connection is lost.
pub(crate) const LOST: &str = r#"close 1006 "WebSocket disconnected without sending Close frame." lost"#;

type Log = mpsc::UnboundedSender<String>;
static LOGS: Mutex<Option<HashMap<String, Log>>> = Mutex::new(None);
static RIGS: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Probe<H> {
    pub(crate) state: HostState,
    log: Log,
    hooks: PhantomData<H>,
}

impl<H> Probe<H> {
    pub(crate) fn log(&self, line: impl Into<String>) {
        let _ = self.log.send(line.into());
    }

    /// Accepts with what the query says: `?tag=a&tag=b&attach=x`.
    pub(crate) fn accept(&self, request: &Request) -> Result<Response> {
        let mut with = Accept::new();
        for (key, value) in
            request.uri().query().unwrap_or_default().split('&').filter_map(|p| p.split_once('='))
        {
            with = match key {
                "tag" => with.tag(value)?,
                "attach" => with.attach(value)?,
                _ => with,
            };
        }
        Ok(self.state.sockets().accept(request, with)?.0)
    }
}

impl<H: Hooks> DurableObject<HostState> for Probe<H> {
    fn new(state: HostState) -> Result<Self> {
        let rig = state.env().var("rig")?;
        let log = LOGS.lock().unwrap().as_ref().unwrap()[&rig].clone();
        let probe = Self { state, log, hooks: PhantomData };
        probe.log("new");
        H::begin(&probe)?;
        Ok(probe)
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        H::fetch(self, request).await
    }

    async fn alarm(&self, _info: AlarmInfo) -> Result<()> {
        H::alarm(self).await
    }

    async fn websocket_message(&self, socket: HostSocket, message: Message) -> Result<()> {
        H::message(self, socket, message).await
    }

    async fn websocket_close(&self, socket: HostSocket, close: Close) -> Result<()> {
        H::close(self, socket, close).await
    }

    async fn websocket_error(&self, socket: HostSocket, error: Error) -> Result<()> {
        H::error(self, socket, error).await
    }
}

/// A served host over a directory of its own. The first segment of a path names the object.
pub(crate) struct Rig {
    pub(crate) host: Option<Host>,
    pub(crate) clock: ManualClock,
    pub(crate) addr: SocketAddr,
    pub(crate) dir: std::sync::Arc<tempfile::TempDir>,
    log: mpsc::UnboundedReceiver<String>,
}

/// Sends no more than this into a connection whose peer does not read, beside the outbox: what the kernel keeps
/// is many times less than the outboxes of the tests.
const KERNEL_BYTES: u32 = 4 * 1_024;

impl Rig {
    pub(crate) async fn start<H: Hooks>() -> Self {
        Self::with::<H>(|builder| builder).await
    }

    pub(crate) async fn with<H: Hooks>(change: impl FnOnce(Builder) -> Builder) -> Self {
        Self::over::<H>(std::sync::Arc::new(tempfile::tempdir().unwrap()), change).await
    }

    pub(crate) async fn over<H: Hooks>(
        dir: std::sync::Arc<tempfile::TempDir>,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        let rig = RIGS.fetch_add(1, Ordering::Relaxed).to_string();
        let (sender, log) = mpsc::unbounded_channel();
        LOGS.lock().unwrap().get_or_insert_default().insert(rig.clone(), sender);
        let builder = Host::builder(dir.path()).shards(1).clock(clock.clone()).var("rig", rig);
        let host = change(builder.object::<Probe<H>>("PROBE")).start().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(KERNEL_BYTES).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1_024).unwrap();
        let addr = listener.local_addr().unwrap();
        serve(&host, listener);
        Self { host: Some(host), clock, addr, dir, log }
    }

    pub(crate) fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    pub(crate) fn objects(&self) -> HostNamespace {
        self.host().namespace("PROBE").unwrap()
    }

    /// The next thing that an object wrote down.
    pub(crate) async fn logged(&mut self) -> String {
        within(self.log.recv()).await.unwrap()
    }

    /// The next things, as a whole.
    pub(crate) async fn expect<const N: usize>(&mut self, lines: [&str; N]) {
        for line in lines {
            assert_eq!(self.logged().await, line);
        }
    }

    pub(crate) fn nothing_logged(&mut self) {
        assert_eq!(self.log.try_recv().ok(), None);
    }

    /// Why the object is awake, once the shard has done all that it could do before.
    pub(crate) async fn awake(&self, name: &str) -> Option<Vec<&'static str>> {
        let id = self.objects().id_of(&ObjectName::new(name).unwrap()).unwrap();
        within(self.objects().why_awake(&id)).await.unwrap()
    }

    /// Lets virtual time pass, after what is under way and before what comes.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.awake("anything").await;
        self.clock.advance(Duration::from_secs(seconds));
        self.awake("anything").await;
    }

    /// Lets an idle object leave memory.
    pub(crate) async fn evict(&self, name: &str) {
        // An answer that is still on its way from the server's threads keeps it: it would be looked at again later only.
        let idle = async {
            while self.awake(name).await.is_some_and(|why| !why.is_empty()) {
                tokio::task::yield_now().await;
            }
        };
        within(idle).await;
        self.pass(10).await;
        assert_eq!(self.awake(name).await, None, "it is still awake");
    }

    pub(crate) async fn fetch(&self, path: &str) -> Result<Response, Error> {
        let name = path.split(['/', '?']).next().unwrap();
        let request =
            http::Request::builder().uri(format!("http://host/{path}")).body(Body::empty()).unwrap();
        within(self.objects().named(name).unwrap().fetch(request)).await
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        within(self.fetch(path).await.unwrap().into_body().text(1_000_000)).await.unwrap()
    }

    /// A connection that shows every frame.
    pub(crate) async fn raw(&self, path: &str) -> Raw {
        Raw::open(self.addr, path, None).await
    }

    /// One whose peer can send little before it must wait for a reader.
    pub(crate) async fn narrow(&self, path: &str) -> Raw {
        Raw::open(self.addr, path, Some(KERNEL_BYTES)).await
    }

    /// An ordinary client.
    pub(crate) async fn client(&self, path: &str) -> WebSocketStream<TcpStream> {
        let stream = within(TcpStream::connect(self.addr)).await.unwrap();
        let url = format!("ws://{}/{path}", self.addr);
        within(tokio_tungstenite::client_async(url, stream)).await.unwrap().0
    }

    /// The handle to one object. It outlives the host.
    pub(crate) fn host_stub(&self, name: &str) -> do_core::tokio::HostStub {
        self.objects().named(name).unwrap()
    }

    pub(crate) async fn shutdown(&mut self, grace: Duration) -> Result<(), Error> {
        within(self.host.take().unwrap().shutdown(grace)).await
    }
}

/// Serves the way an application does.
pub(crate) fn serve(host: &Host, listener: TcpListener) {
    host.serve(listener, async |request: Request, env: HostEnv| {
        let name = request.uri().path().split('/').nth(1).unwrap_or_default();
        let object = env.namespace("PROBE")?.named(ObjectName::new(name)?)?;
        Ok(object.fetch(request).await?)
    });
}

/// What a [`Raw`] client receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Got {
    Text(String),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
    /// The peer shut its direction.
    Eof,
    /// The peer reset the connection.
    Reset,
}

pub(crate) fn text(text: &str) -> Got {
    Got::Text(text.to_owned())
}

pub(crate) fn close(code: u16, reason: &str) -> Got {
    Got::Close(Some((code, reason.to_owned())))
}

/// A WebSocket client that sends what it is told, broken or not, and answers nothing by itself.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    input: VecDeque<u8>,
}

pub(crate) const TEXT: u8 = 0x81;
pub(crate) const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;

/// A frame of a client, masked with zeroes.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        len @ 0..=125 => frame.push(0x80 | u8::try_from(len).unwrap()),
        len @ 126..=0xFFFF => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(len).unwrap().to_be_bytes());
        }
        len => {
            frame.push(0x80 | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// The head of a request that asks for a WebSocket.
pub(crate) fn upgrade_head(path: &str) -> String {
    format!(
        "GET /{path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

impl Raw {
    pub(crate) async fn connect(addr: SocketAddr, receive_buffer: Option<u32>) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        let stream = within(socket.connect(addr)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, input: VecDeque::new() }
    }

    async fn open(addr: SocketAddr, path: &str, receive_buffer: Option<u32>) -> Self {
        let mut raw = Self::connect(addr, receive_buffer).await;
        raw.send(upgrade_head(path).as_bytes()).await;
        let head = raw.head().await;
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        raw
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.send(&frame(TEXT, text.as_bytes())).await;
    }

    pub(crate) async fn close(&mut self, code: u16, reason: &str) {
        self.send(&frame(CLOSE, &[&code.to_be_bytes(), reason.as_bytes()].concat())).await;
    }

    /// The head of the next HTTP response.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.byte().await.expect("the head of a response"));
        }
        String::from_utf8(head).unwrap()
    }

    async fn byte(&mut self) -> Result<u8, Got> {
        while self.input.is_empty() {
            let mut buffer = vec![0; 64 * 1_024];
            match within(self.stream.read(&mut buffer)).await {
                Ok(0) => return Err(Got::Eof),
                Ok(read) => self.input.extend(&buffer[..read]),
                Err(_) => return Err(Got::Reset),
            }
        }
        Ok(self.input.pop_front().unwrap())
    }

    pub(crate) async fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Got> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            bytes.push(self.byte().await?);
        }
        Ok(bytes)
    }

    /// The next frame or the end.
    pub(crate) async fn next(&mut self) -> Got {
        self.frame().await.unwrap_or_else(|end| end)
    }

    async fn frame(&mut self) -> Result<Got, Got> {
        let head = self.bytes(2).await?;
        let len = match head[1] {
            126 => self.bytes(2).await?.iter().fold(0, |n, b| n << 8 | usize::from(*b)),
            127 => self.bytes(8).await?.iter().fold(0, |n, b| n << 8 | usize::from(*b)),
            short => short.into(),
        };
        let payload = self.bytes(len).await?;
        Ok(match head[0] {
            TEXT => Got::Text(String::from_utf8(payload).unwrap()),
            BINARY => Got::Binary(payload),
            0x8A => Got::Pong(payload),
            CLOSE if payload.is_empty() => Got::Close(None),
            CLOSE => Got::Close(Some((
                u16::from_be_bytes([payload[0], payload[1]]),
                String::from_utf8(payload[2..].to_vec()).unwrap(),
            ))),
            other => panic!("a frame of kind {other:#x}"),
        })
    }

    /// Ends our direction only.
    pub(crate) async fn half_close(&mut self) {
        within(self.stream.shutdown()).await.unwrap();
    }
}

/// A text of an ordinary client.
pub(crate) fn words(text: &str) -> tungstenite::Message {
    tungstenite::Message::text(text)
}
