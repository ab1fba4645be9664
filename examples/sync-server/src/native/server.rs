//! The server: a host with one room, the HTTP interface before it, and the watcher that reports to it.

use super::{
    args::Args,
    forward, paths, signal,
    watch::{ChangeKind, RawChange, WatchError, Watcher},
};
use crate::{Change, Phase, SyncRoom, change, notify_requests, route_in};
use do_core::{
    Error, ErrorKind, Namespace, Stub, limits,
    tokio::{Host, HostEnv, HostStub},
};
use sha2::{Digest, Sha256};
use std::{
    io::{self, Write},
    net::SocketAddr,
    path::Path,
    time::Duration,
};
use tokio::net::{TcpListener, TcpSocket};

/// How long requests under way may take when the server ends.
const GRACE: Duration = Duration::from_secs(10);

/// The server's room is one object, so one thread runs all of it.
const SHARDS: usize = 1;

/// What the operating system keeps of each connection that is not read, in bytes; Linux takes twice as much for its own
/// book-keeping. Unset it is megabytes, behind the back of the room, which bounds what waits for an editor. 64 KiB are
/// enough for 5 Mbit/s over 100 ms, many times what changes of files need.
const SEND_BUFFER_BYTES: u32 = 64 * 1_024;

/// How many connections may wait to be taken.
const BACKLOG: u32 = 1_024;

/// Why the server ended otherwise than by a signal. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// Nobody can be told where it listens.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// The data directory cannot be used, or the host failed.
    #[error(transparent)]
    Host(#[from] Error),
    /// The folder can no longer be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The system refuses something else.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Serves until SIGTERM or SIGINT, then ends gracefully. The first line on standard output says where, once a
/// change of the folder would be seen.
///
/// # Errors
/// Whatever keeps it from starting or from going on.
pub async fn run(args: Args) -> Result<(), Fault> {
    let asked_to_end = signal::shutdown()?;
    let name = room_name(&args.folder);
    let builder = Host::builder(&args.data).shards(SHARDS).idle(args.idle).var("ROOM", &name);
    let builder = if args.listen.ip().is_loopback() { builder.var("LOOPBACK", "1") } else { builder };
    let host = builder.object::<SyncRoom<_>>("SYNC_ROOM").start()?;
    let listener = listen(args.listen).map_err(|e| Fault::Listen(args.listen, e))?;
    let address = listener.local_addr()?;
    let (folder, data) = (args.folder, args.data);
    let (_watcher, changes) = tokio::task::spawn_blocking(move || Watcher::start(folder, vec![data]))
        .await
        .map_err(io::Error::other)??;
    host.serve(listener, async |request, env: HostEnv| {
        let phase = if env.is_shutting_down() { Phase::Draining } else { Phase::Serving };
        route_in(request, env, phase).await
    });
    writeln!(io::stdout(), "listening on http://{address}").map_err(Fault::Output)?;
    let room = host.namespace("SYNC_ROOM")?.named(name)?;
    let result = tokio::select! {
        () = asked_to_end => Ok(()),
        ended = forward::forward(changes, async |changes| report(&room, changes).await) => ended,
    };
    host.shutdown(GRACE).await?;
    Ok(result?)
}

/// A listener whose connections have the [send buffer](SEND_BUFFER_BYTES): they inherit it, and it has to be set before.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As `TcpListener::bind` has it: on Windows the option means something else.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The canonical path; where that is too long for the name of an object, its beginning and a digest.
fn room_name(folder: &Path) -> String {
    let mut name = paths::encode(folder);
    if name.len() > limits::OBJECT_NAME_BYTES {
        let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut keep = limits::OBJECT_NAME_BYTES - hash.len() - 1;
        while !name.is_char_boundary(keep) {
            keep -= 1;
        }
        name.truncate(keep);
        name.push('#');
        name.push_str(&hash);
    }
    name
}

/// Tells the room, and waits until it has the changes on the disk.
async fn report(room: &HostStub, changes: &[RawChange]) -> Result<(), Error> {
    for request in notify_requests(changes.iter().filter_map(acceptable))? {
        let response = room.fetch(request).await?;
        let status = response.status();
        if !status.is_success() {
            let kind = if status.is_server_error() { ErrorKind::Transient } else { ErrorKind::Invalid };
            let body = response.into_body().text(4_096).await.unwrap_or_default();
            return Err(Error::new(kind, format!("the room answers {status}: {body}")));
        }
    }
    Ok(())
}

/// `None` for a change whose path the room would refuse, such as one that is too long: the others of its batch
/// still count.
fn acceptable(raw: &RawChange) -> Option<Change> {
    let change = match &raw.kind {
        ChangeKind::Created => Change::new(change::Kind::Created, &raw.path),
        ChangeKind::Modified => Change::new(change::Kind::Modified, &raw.path),
        ChangeKind::Removed => Change::new(change::Kind::Removed, &raw.path),
        ChangeKind::Renamed { from } => Change::renamed(from, &raw.path),
    };
    change.inspect_err(|error| tracing::warn!(path = raw.path, %error, "a change is not reported")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_named_by_the_path_however_long_that_is() {
        assert_eq!(room_name(Path::new("/srv/project")), "/srv/project");
        let (long, other) = (format!("/{}", "é".repeat(2_000)), format!("/{}x", "é".repeat(2_000)));
        let name = room_name(Path::new(&long));
        assert!(name.len() <= limits::OBJECT_NAME_BYTES && name.starts_with("/éé"), "{}", name.len());
        assert_ne!(name, room_name(Path::new(&other)));
    }

    #[test]
    fn a_change_that_the_room_would_refuse_is_left_out_alone() {
        let raw = |path: &str| RawChange { kind: ChangeKind::Created, path: path.to_owned() };
        assert!(acceptable(&raw("a.txt")).is_some());
        assert!(acceptable(&raw(&"x".repeat(5_000))).is_none());
    }
}
