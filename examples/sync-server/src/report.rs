//! Reads the body of a report up to its limit, and answers those who send more in a way that they can read.

use crate::change::BODY_BYTES;
use do_core::Body;
use http::{HeaderMap, header};
use http_body::Body as _;
use std::{future::poll_fn, pin::Pin};

/// So much of a body that is too long is read and thrown away before it is refused: a client that is still
/// sending when the server closes the connection loses the answer. One that sends even more is cut off.
const DISCARDED_BYTES: usize = 1_024 * 1_024;

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLong,
    /// The client went away.
    Ended,
}

/// The whole body, if it is at most [`BODY_BYTES`] long. Holds no more than that in memory.
pub(crate) async fn read(headers: &HeaderMap, mut body: Body) -> Result<Vec<u8>, Unread> {
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > DISCARDED_BYTES as u64) {
        return Err(Unread::TooLong);
    }
    let (mut kept, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame.map_err(|_| Unread::Ended)?.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length <= BODY_BYTES {
            kept.extend_from_slice(&data);
        } else if length > DISCARDED_BYTES {
            return Err(Unread::TooLong);
        }
    }
    if length <= BODY_BYTES { Ok(kept) } else { Err(Unread::TooLong) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ready;

    fn read_chunks(chunks: &[usize], ended: bool) -> Result<usize, Unread> {
        let (sender, body) = Body::channel(4 * DISCARDED_BYTES);
        for length in chunks {
            sender.try_send(vec![0; *length]).unwrap();
        }
        let _open = (!ended).then_some(sender);
        ready(read(&HeaderMap::new(), body)).map(|body| body.len())
    }

    #[test]
    fn the_limit_holds_whether_or_not_the_length_is_announced() {
        assert_eq!(read_chunks(&[], true), Ok(0));
        assert_eq!(read_chunks(&[BODY_BYTES - 1, 1], true), Ok(BODY_BYTES));
        assert_eq!(read_chunks(&[BODY_BYTES, 1], true), Err(Unread::TooLong));
        assert_eq!(read_chunks(&[BODY_BYTES, BODY_BYTES, 1], true), Err(Unread::TooLong));
    }

    #[test]
    fn who_sends_without_end_is_cut_off_and_who_announces_it_at_once() {
        assert_eq!(read_chunks(&[DISCARDED_BYTES, 1], false), Err(Unread::TooLong));
        let (_open, body) = Body::channel(1);
        let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, "1048577".parse().unwrap())]);
        assert_eq!(ready(read(&headers, body)), Err(Unread::TooLong));
    }
}
