//! do-core's tokio host with do-sync's room.

use super::{
    Contender, Outcome,
    server::{Drops, PUBLISH},
    tls,
};
use do_core::{
    ObjectName,
    prelude::*,
    tokio::{Host, HostEnv, HostNamespace},
};
use do_sync::Room;
use hyper_util::rt::TokioIo;
use std::{sync::OnceLock, time::Duration};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Where the object counts what it could not send. An object has no other way to its process.
static DROPS: OnceLock<Drops> = OnceLock::new();

struct Fanout<S: ObjectState> {
    state: S,
    room: Room<S>,
}

impl<S: ObjectState> DurableObject<S> for Fanout<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { room: Room::new(&state), state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() == PUBLISH {
            return Ok(self.state.sockets().accept(&request, Accept::new())?.0);
        }
        Ok(self.room.join(&request, Accept::new())?.0)
    }

    async fn websocket_message(&self, _: SocketOf<S>, message: Message) -> Result<()> {
        let report = self.room.send_all(message);
        if report.dropped > 0
            && let Some(drops) = DROPS.get()
        {
            drops.add(report.dropped as u64);
        }
        Ok(())
    }
}

/// Serves on a listener, plain or behind TLS.
///
/// # Errors
/// When the host cannot start.
pub fn serve(listener: TcpListener, contender: Contender, drops: Drops) -> Outcome<Host> {
    DROPS.get_or_init(|| drops);
    let data = std::env::temp_dir().join(format!("do-bench-fanout-{}", std::process::id()));
    let host = Host::builder(&data).idle(Duration::from_secs(1)).object::<Fanout<_>>("ROOM");
    let host = if contender == Contender::Uncorked { host.cork(Duration::ZERO) } else { host };
    let host = host.start()?;
    if contender == Contender::Tls {
        tokio::spawn(serve_tls(listener, host.namespace("ROOM")?, tls::acceptor()?));
    } else {
        host.serve(listener, async |request: Request, env: HostEnv| {
            Ok(env.namespace("ROOM")?.named("room")?.fetch(request).await?)
        });
    }
    Ok(host)
}

/// As an embedder does it: TLS and hyper are his, the objects are a service.
async fn serve_tls(listener: TcpListener, objects: HostNamespace, tls: TlsAcceptor) {
    let service = objects.service(|_: &http::request::Parts| ObjectName::new("room"));
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, service) = (tls.clone(), service.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let Ok(stream) = tls.accept(stream).await else { return };
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            let _ = served.await;
        });
    }
}
