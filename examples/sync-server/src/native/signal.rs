//! The wish of the outside that the server ends: SIGTERM from a service manager, SIGINT from a terminal.

use std::io;

/// Listens from now on, and is ready when the process was asked to end. From the call on the signals no longer end
/// the process by themselves.
///
/// # Errors
/// When the system refuses the handlers.
#[cfg(unix)]
pub fn shutdown() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The same for systems whose only such signal is that of the terminal.
///
/// # Errors
/// Never; a refused handler ends the wait at once.
#[cfg(not(unix))]
pub fn shutdown() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!("cannot wait for Ctrl-C: {error}");
        }
    })
}
