//! What a client reads of an HTTP/1.1 response in chunks that carries events: enough to count, and to see that nothing
//! is missing, doubled or out of place.

use crate::fanout::Outcome;

/// Most bytes of a response's head, of a chunk's size and of a line that are kept.
const KEPT: usize = 8 * 1_024;

/// Reads one response, whatever pieces it comes in.
#[derive(Debug, Default)]
pub struct Reader {
    place: Place,
    /// The head or a chunk's size, as far as it has come.
    part: Vec<u8>,
    /// A line, which may be in several chunks.
    line: Vec<u8>,
    event: Event,
}

#[derive(Debug, Default)]
enum Place {
    #[default]
    Head,
    Size,
    Data(usize),
    /// The line end behind a chunk, of which so many bytes have come.
    Behind(usize),
    End,
}

/// An event of a stream. Data of several lines is that of the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name; empty when it has none.
    pub name: Vec<u8>,
    /// Its id; that of the last event that had one.
    pub id: Vec<u8>,
    /// Its data, when it has any.
    pub data: Option<Vec<u8>>,
}

impl Reader {
    /// Takes what has come; each event goes to `on_event`.
    ///
    /// # Errors
    /// What is no response of status 200 in chunks.
    pub fn read(&mut self, mut bytes: &[u8], mut on_event: impl FnMut(&Event)) -> Outcome<()> {
        while !bytes.is_empty() {
            bytes = match self.place {
                Place::Head => self.head(bytes)?,
                Place::Size => self.size(bytes)?,
                Place::Data(left) => {
                    let (now, later) = bytes.split_at(left.min(bytes.len()));
                    self.place =
                        if left > now.len() { Place::Data(left - now.len()) } else { Place::Behind(0) };
                    self.lines(now, &mut on_event)?;
                    later
                }
                Place::Behind(have) => {
                    let taken = bytes.len().min(2 - have);
                    self.place = if have + taken == 2 { Place::Size } else { Place::Behind(have + taken) };
                    bytes.get(taken..).unwrap_or_default()
                }
                Place::End => return Ok(()),
            };
        }
        Ok(())
    }

    /// Whether the response is complete.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.place, Place::End)
    }

    /// Whether the head of the response has come.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        !matches!(self.place, Place::Head)
    }

    fn head<'a>(&mut self, bytes: &'a [u8]) -> Outcome<&'a [u8]> {
        let before = self.part.len();
        self.part.extend_from_slice(bytes);
        let Some(end) = memchr::memmem::find(&self.part, b"\r\n\r\n") else {
            return if self.part.len() > KEPT { Err("a long head".into()) } else { Ok(&[]) };
        };
        let head = String::from_utf8_lossy(self.part.get(..end).unwrap_or_default()).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") || !head.contains("transfer-encoding: chunked") {
            return Err(format!("not a stream: {head}").into());
        }
        self.part.clear();
        self.place = Place::Size;
        Ok(bytes.get(end + 4 - before..).unwrap_or_default())
    }

    fn size<'a>(&mut self, bytes: &'a [u8]) -> Outcome<&'a [u8]> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.part.extend_from_slice(bytes);
            return if self.part.len() > KEPT { Err("a long size of a chunk".into()) } else { Ok(&[]) };
        };
        let (line, rest) = bytes.split_at(end + 1);
        self.part.extend_from_slice(line);
        let mut size = 0_usize;
        for digit in self.part.trim_ascii() {
            let digit = char::from(*digit).to_digit(16).ok_or("a chunk without a size")?;
            size = size.saturating_mul(16).saturating_add(digit as usize);
        }
        self.part.clear();
        self.place = if size == 0 { Place::End } else { Place::Data(size) };
        Ok(rest)
    }

    fn lines(&mut self, mut bytes: &[u8], on_event: &mut impl FnMut(&Event)) -> Outcome<()> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.event.line(line, on_event);
            } else {
                self.line.extend_from_slice(line);
                let line = std::mem::take(&mut self.line);
                self.event.line(&line, on_event);
                self.line = line;
                self.line.clear();
            }
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > 64 * KEPT { Err("a long line".into()) } else { Ok(()) }
    }
}

impl Event {
    fn line(&mut self, line: &[u8], on_event: &mut impl FnMut(&Self)) {
        if line.is_empty() {
            if self.data.is_some() {
                on_event(self);
            }
            (self.data, self.name) = (None, Vec::new());
        } else if let Some(data) = line.strip_prefix(b"data: ") {
            self.data = Some(data.to_vec());
        } else if let Some(id) = line.strip_prefix(b"id: ") {
            self.id.clear();
            self.id.extend_from_slice(id);
        } else if let Some(name) = line.strip_prefix(b"event: ") {
            self.name = name.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_response_may_be_of_any_size() {
        let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
            b\r\n: hi\nevent:\r\n1b\r\n a\nid: 1-2\ndata: x\n\ndata: y\r\n2\r\n\n\n\r\n0\r\n\r\n";
        let (x, y) = (b"x".to_vec(), b"y".to_vec());
        let expected = [
            Event { name: b"a".to_vec(), id: b"1-2".to_vec(), data: Some(x) },
            Event { name: Vec::new(), id: b"1-2".to_vec(), data: Some(y) },
        ];
        for size in 1..=response.len() {
            let (mut reader, mut events) = (Reader::default(), Vec::new());
            for piece in response.chunks(size) {
                reader.read(piece, |event| events.push(event.clone())).unwrap();
            }
            assert!(reader.is_complete());
            assert_eq!(events, expected, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let mut reader = Reader::default();
        assert!(reader.read(b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n", |_| {}).is_err());
    }
}
