//! What the application says of members: one of their sockets is gone, they have to go, others see something else.

use super::mark::{Attached, close, foreign, raw};
use crate::{Position, Room, codes};
use do_core::{CloseCode, CloseFrame, Error, ObjectState, ReadyState, Socket, SocketOf};
use serde::Serialize;
use serde_json::value::RawValue;

/// Sockets, and what each is to carry.
type Remarked<S> = Vec<(SocketOf<S>, Box<RawValue>)>;

impl<S: ObjectState> Room<S> {
    /// To be called in `websocket_close` and in `websocket_error`: whoever has no other open socket has left, or is waited
    /// for if there is a [grace](crate::Members::grace). `left` is logged and said to the others; its position is given,
    /// `None` when they have not left by this. The [registry](Room::connections) is told that the socket is gone, also
    /// when this fails, and also of one that joined.
    ///
    /// Calling it twice, or for a socket that did not enter this room or is open, changes nothing. One that was never
    /// told of, or could not be, is made up for by the first use of the room in the next instance.
    ///
    /// # Errors
    /// Faults of the storage; then nothing was said. Faults of the alarm: who is waited for is then until the next use of
    /// the room.
    ///
    /// # Cancel safety
    /// All of it happens at the first poll, except that an alarm may not be set.
    pub async fn leave(&self, socket: &SocketOf<S>) -> Result<Option<Position>, Error> {
        self.tell_left(socket, true);
        let Some(attached) = self.mark_of(socket) else { return Ok(None) };
        if socket.ready_state() != ReadyState::Open {
            self.forget_outbound(socket);
        }
        let (roster, Some(id)) = (self.roster(), attached.mark.m) else { return Ok(None) };
        let changes = roster.change(None, |changes| roster.settle(&id, changes))?;
        roster.arm().await?;
        Ok(changes.of(&id).map(|logged| logged.position))
    }

    /// Makes a member go: their sockets close with 4501 and the reason, and they have left at once, also when they were
    /// only waited for. Gives how many sockets that were.
    ///
    /// A client that follows the protocol does not come back by itself. Whoever comes all the same is let in: whether
    /// somebody is banned is for the application to remember.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](do_core::ErrorKind::Limit) when the reason is longer than
    /// [`limits::CLOSE_REASON_BYTES`](do_core::limits::CLOSE_REASON_BYTES), and faults of the storage: nothing has happened
    /// then. Faults of the alarm as in [`leave`](Self::leave).
    pub async fn kick(&self, member: &str, reason: &str) -> Result<usize, Error> {
        CloseFrame::new(CloseCode::NORMAL, reason)?;
        let roster = self.roster();
        let sockets = self.sockets_of(member);
        // The sockets are still open: they hear of it themselves, before their close.
        roster.change(None, |changes| roster.end(member, changes))?;
        for socket in &sockets {
            close(socket, codes::KICKED, reason);
        }
        roster.arm().await?;
        Ok(sockets.len())
    }

    /// Changes what others see of the member whose socket this is, on all of their sockets. `updated` is logged and said to
    /// all; its position is given, `None` when it was the same before, or they have left. It stays until they leave.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](do_core::ErrorKind::NotFound) when the socket did not enter this room,
    /// [`ErrorKind::Limit`](do_core::ErrorKind::Limit) when it is longer, with what is attached to one of their sockets,
    /// than [`limits::ATTACHMENT_BYTES`](do_core::limits::ATTACHMENT_BYTES), and faults of the storage: nothing has changed
    /// then. Faults of the alarm as in [`leave`](Self::leave).
    pub async fn set_data<T: Serialize + ?Sized>(
        &self,
        socket: &SocketOf<S>,
        data: &T,
    ) -> Result<Option<Position>, Error> {
        let id = self.mark_of(socket).and_then(|attached| attached.mark.m).ok_or_else(foreign)?;
        let (roster, data) = (self.roster(), raw(data)?);
        let marks = self.remarked(&id, &data)?;
        let mut is_written = false;
        let changes = roster.change(None, |changes| {
            roster.settle(&id, changes)?;
            is_written = roster.write_data(&id, &data, changes)?;
            Ok(())
        })?;
        marks.iter().try_for_each(|(socket, attached)| socket.set_attachment(attached))?;
        roster.arm().await?;
        // Else what was logged of them is that they left.
        Ok(changes.of(&id).filter(|_| is_written).map(|logged| logged.position))
    }

    /// What the sockets of a member are to carry when others see something else of them.
    pub(super) fn remarked(&self, member: &str, data: &RawValue) -> Result<Remarked<S>, Error> {
        let carried = self.sockets_of(member).into_iter().filter_map(|s| self.mark_of(&s).map(|a| (s, a)));
        carried
            .map(|(socket, Attached { mut mark, app })| {
                mark.d = Some(data.to_owned());
                Ok((socket, Attached { mark, app }.write()?))
            })
            .collect()
    }
}
