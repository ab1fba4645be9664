//! The WebSocket protocol: own framing and a table of parked connections, so that an idle socket costs no task,
//! no codec and no buffer.
//!
//! Nothing here knows objects. A shard polls its [`Connections`] when a waker says so and hands the events to
//! the engine, which answers through [`Transport`](crate::engine::Transport).

mod connection;
mod connections;
mod cork;
pub(super) mod decoder;
mod frame;
mod handshake;
mod outbox;
mod stream;
mod unmask;

#[cfg(feature = "testing")]
use decoder::ProtocolError;

pub(crate) use connection::ConnEvent;
pub(crate) use connections::{ConnLimits, Connections};
pub(crate) use cork::Cork;
pub(crate) use handshake::response;

/// What a Close frame with this payload says; or, when it must not be sent, how that is told to both sides.
#[cfg(feature = "testing")]
pub(crate) fn peer_close(payload: &[u8]) -> Result<crate::Close, (crate::Error, crate::CloseFrame)> {
    decoder::close_event(payload).map_err(ProtocolError::told)
}

/// How a message that is longer than the limit is told to both sides.
#[cfg(feature = "testing")]
pub(crate) fn too_long() -> (crate::Error, crate::CloseFrame) {
    ProtocolError::TOO_LONG.told()
}

#[cfg(test)]
mod tests;
