//! The real program in a folder of its own, and the two clients that speak with it: [`Http`], which sends whatever
//! bytes a test wants, and [`Editor`], a WebSocket client.
//!
//! Nothing here waits for a length of time: [`eventually`] and [`within`] wait for a condition, and [`PATIENCE`]
//! only ends a run that would never end.

use futures::{SinkExt, StreamExt};
use rusqlite::Connection;
use serde_json::Value;
use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpSocket, TcpStream},
    process::{Child, ChildStdout, Command},
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, protocol::frame::coding::CloseCode},
};

/// Far beyond what any step needs, also when other tests have the processors.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at what can only be looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What the future gives; the test fails when it never does.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("it did not happen: {what}"))
}

/// Looks until the condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    within(what, async {
        while !condition() {
            sleep(LOOK).await;
        }
    })
    .await;
}

/// A folder to watch and a data directory beside it, which outlive the servers on them.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("watched")).unwrap();
        Self { directory }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.directory.path().join("watched")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: &str) {
        fs::write(self.folder().join(path), content).unwrap();
    }

    pub(crate) async fn start(&self) -> Server {
        self.start_with(&[]).await
    }

    /// Starts the server on a free port, with more arguments.
    pub(crate) async fn start_with(&self, more: &[&str]) -> Server {
        let mut command = sync_server();
        command.arg(self.folder()).arg("--data").arg(self.data());
        if !more.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Server::spawn(command.args(more)).await
    }

    /// The room's rows. The server must not run: the files are copied first, so that looking changes nothing that a
    /// server finds later.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let copy = tempfile::tempdir().unwrap();
        let folder = self.data().join("SYNC_ROOM");
        let rooms: Vec<_> = entries(&folder).iter().flat_map(|folder| entries(folder)).collect();
        for file in &rooms {
            fs::copy(file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        let room = rooms.iter().find(|file| file.extension().is_some_and(|e| e == "sqlite")).unwrap();
        let room = Connection::open(copy.path().join(room.file_name().unwrap())).unwrap();
        let mut rows = room.prepare("SELECT seq, path FROM changes ORDER BY seq").unwrap();
        let rows = rows.query_map([], |row| Ok(Row { seq: row.get(0)?, path: row.get(1)? })).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A change as it lies in the room's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) path: String,
}

/// The program, with an environment that does not depend on who runs the tests.
pub(crate) fn sync_server() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sync-server"));
    command.env("NO_COLOR", "1").env("RUST_LOG", "do_core=trace").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) first_line: String,
    /// Held, because a program that writes on must not find its pipe closed.
    stdout: Lines<BufReader<ChildStdout>>,
    /// Standard error goes to a file: what the server has written can be read at once, without a race with a pipe.
    log: PathBuf,
    _logs: TempDir,
}

impl Server {
    pub(crate) async fn spawn(command: &mut Command) -> Self {
        let logs = tempfile::tempdir().unwrap();
        let log = logs.path().join("stderr");
        command.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let first_line = within("the first line", stdout.next_line()).await.unwrap();
        let first_line =
            first_line.unwrap_or_else(|| panic!("no line: {}", fs::read_to_string(&log).unwrap()));
        let address = first_line.strip_prefix("listening on http://").expect(&first_line);
        let mut address: SocketAddr = address.parse().unwrap();
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        Self { child, address, first_line, stdout, log, _logs: logs }
    }

    /// Sends a request with the right `Host` and gives the answer.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = self.address.to_string();
        let mut all = vec![("host", host.as_str())];
        all.extend(headers);
        let mut http = Http::connect(self.address).await;
        http.send(request(method, path, &all, body).as_bytes()).await.unwrap();
        within("an answer", http.answer(method)).await.unwrap()
    }

    /// Reports changes; gives the status and the JSON of the answer.
    pub(crate) async fn notify(&self, body: &str) -> (u16, Value) {
        let answer = self.ask("POST", "/notify", &[JSON], body).await;
        (answer.status, answer.json())
    }

    /// Reports one change and gives its number.
    pub(crate) async fn notify_created(&self, path: &str) -> i64 {
        let (status, answer) = self.notify(&created(path)).await;
        assert_eq!(status, 200, "{answer}");
        answer["seq"].as_i64().unwrap()
    }

    /// How often a line of the log has all these words.
    pub(crate) fn logged(&self, words: &[&str]) -> usize {
        let log = fs::read(&self.log).unwrap();
        let log = String::from_utf8_lossy(&log);
        log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    pub(crate) fn constructed(&self) -> usize {
        self.logged(&["constructed"])
    }

    /// Waits until the room has left memory for the `times`th time.
    pub(crate) async fn evicted(&self, times: usize) {
        eventually("the room leaves memory", || self.logged(&["evicted"]) >= times).await;
        assert_eq!(self.logged(&["evicted"]), times);
    }

    /// How many files and connections it has open.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_files(&self) -> usize {
        entries(&PathBuf::from(format!("/proc/{}/fd", self.child.id().expect("it runs")))).len()
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        let id = self.child.id().expect("it runs");
        // The shell's own: a package with `kill` may be missing.
        let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -TERM {id}")).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        within("the server ends", self.child.wait()).await.unwrap()
    }

    /// Ends it gracefully and checks that it says so.
    pub(crate) async fn stop(mut self) {
        self.terminate();
        assert_eq!(self.ended().await.code(), Some(0), "{}", fs::read_to_string(&self.log).unwrap());
        assert_eq!(self.stdout.next_line().await.unwrap(), None, "there is one line on standard output");
    }

    /// As `kill -9` does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) fn created(path: &str) -> String {
    serde_json::json!({ "kind": "created", "path": path }).to_string()
}

/// The text of a request. A body gets its length, unless the headers say how it is sent.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    let framed = headers.iter().any(|(name, _)| ["content-length", "transfer-encoding"].contains(name));
    if !body.is_empty() && !framed {
        text += &format!("content-length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}

/// The headers of a right handshake, without `Host`.
pub(crate) const HANDSHAKE: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// One connection that sends what it is told.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).await.unwrap()
    }

    pub(crate) async fn try_connect(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(TcpStream::connect(address).await?) })
    }

    /// The system keeps little for it that it has not read.
    pub(crate) async fn connect_narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1_024).unwrap();
        Self { stream: BufReader::new(socket.connect(address).await.unwrap()) }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// Reads one answer; to HEAD it has no body.
    pub(crate) async fn answer(&mut self, method: &str) -> io::Result<Answer> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut answer = Answer {
            status: status.ok_or(io::ErrorKind::InvalidData)?,
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            answer.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if method == "HEAD" || answer.status == 101 {
            return Ok(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let length = usize::from_str_radix(&self.line().await?, 16).unwrap();
                let mut chunk = vec![0; length + 2];
                self.stream.read_exact(&mut chunk).await?;
                answer.body.extend(&chunk[..length]);
                if length == 0 {
                    return Ok(answer);
                }
            }
        }
        let length = answer.header("content-length").expect("a length").parse().unwrap();
        answer.body = vec![0; length];
        self.stream.read_exact(&mut answer.body).await?;
        Ok(answer)
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// A WebSocket frame from the server: opcode with the FIN bit, and payload.
    pub(crate) async fn frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let (first, length) = (self.stream.read_u8().await?, self.stream.read_u8().await?);
        let length = match length {
            126 => self.stream.read_u16().await?.into(),
            127 => usize::try_from(self.stream.read_u64().await?).unwrap(),
            short => short.into(),
        };
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await?;
        Ok((first, payload))
    }

    /// Reads on to the end of the connection; gives what came.
    pub(crate) async fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await?;
        Ok(rest)
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The only header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let first = found.next();
        assert_eq!(found.next(), None, "{name} comes twice");
        first
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The text of an error, whose body has exactly the form of the interface.
    pub(crate) fn error(&self) -> String {
        let json = self.json();
        assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
        json["error"].as_str().unwrap().to_owned()
    }
}

/// A connected editor.
pub(crate) struct Editor {
    socket: WebSocketStream<TcpStream>,
}

impl Editor {
    /// Joins and gives the greeting as well.
    pub(crate) async fn join(server: &Server) -> (Self, Value) {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let url = format!("ws://{}/ws", server.address);
        let (socket, response) = within("the handshake", client_async(url, stream)).await.unwrap();
        assert_eq!(response.status(), 101);
        let mut editor = Self { socket };
        let hello = editor.next().await;
        assert_eq!(hello["type"], "hello", "the greeting comes first");
        (editor, hello)
    }

    /// The next message of any kind, or the end.
    pub(crate) async fn message(&mut self) -> Option<Result<Message, tungstenite::Error>> {
        within("a message", self.socket.next()).await
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.message().await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            other => panic!("not a text: {other:?}"),
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    pub(crate) async fn send(&mut self, message: impl Into<Message>) {
        within("the message leaves", self.socket.send(message.into())).await.unwrap();
    }

    /// The code with which the server closes; nothing else comes before.
    pub(crate) async fn close_code(&mut self) -> CloseCode {
        match self.message().await {
            Some(Ok(Message::Close(Some(frame)))) => frame.code,
            other => panic!("no Close frame: {other:?}"),
        }
    }

    /// Leaves politely; complete when the server has answered.
    pub(crate) async fn leave(mut self) {
        self.socket.close(None).await.unwrap();
        while let Some(Ok(_)) = self.message().await {}
    }
}
