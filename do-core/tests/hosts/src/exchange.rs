//! The suite's client for bodies: one request over TCP, which sends and reads only what it is told to.

use crate::web::{ANSWER_TIME, ended, within};
use do_core::testing::{Exchange, Fault, Head, Leave, Outcome, Piece};
use http::{HeaderName, HeaderValue, Method, Response, header};
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    method: Method,
    /// Whether the request's body is sent in chunks.
    chunked: bool,
    left: Left,
    /// For what is to come of the response's body.
    hear_time: Duration,
}

/// What is still to come of the response's body.
enum Left {
    /// Its head.
    Head,
    Bytes(u64),
    /// Of this chunk; then others.
    Chunk(u64),
    /// Everything until the connection ends.
    ToTheEnd,
    Nothing,
}

impl Http {
    pub(crate) async fn begin(address: SocketAddr, head: Head, hear_time: Duration) -> Result<Self, Fault> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let has_body = head.method() != Method::GET && head.method() != Method::HEAD;
        let chunked = has_body && !head.headers().contains_key(header::CONTENT_LENGTH);
        let mut text =
            format!("{} {} HTTP/1.1\r\nhost: {address}\r\n", head.method(), head.uri()).into_bytes();
        for (name, value) in head.headers() {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        if chunked {
            text.extend(b"transfer-encoding: chunked\r\n");
        }
        text.extend(b"\r\n");
        stream.write_all(&text).await?;
        let (stream, method) = (BufReader::new(stream), head.method().clone());
        Ok(Self { stream, method, chunked, left: Left::Head, hear_time })
    }

    async fn line(&mut self) -> Result<Vec<u8>, Fault> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).await?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line.to_vec()),
            None => Err(lost().into()),
        }
    }

    async fn response(&mut self) -> Result<Response<()>, Fault> {
        let status = String::from_utf8(self.line().await?)?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok());
        let code = code.ok_or_else(|| Fault::new(format!("no HTTP: {status:?}")))?;
        let mut response = Response::builder().status(code).body(())?;
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                break;
            }
            let colon = line.iter().position(|byte| *byte == b':');
            let colon = colon.ok_or_else(|| Fault::new(format!("no header: {line:?}")))?;
            let name = HeaderName::from_bytes(&line[..colon])?;
            response.headers_mut().append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())?);
        }
        let length = response.headers().get(header::CONTENT_LENGTH);
        self.left = if self.method == Method::HEAD || matches!(code, 204 | 304) {
            Left::Nothing
        } else if response.headers().contains_key(header::TRANSFER_ENCODING) {
            Left::Chunk(0)
        } else if let Some(length) = length {
            Left::Bytes(length.to_str()?.parse()?)
        } else {
            Left::ToTheEnd
        };
        Ok(response)
    }

    async fn piece(&mut self, most: usize) -> Result<Piece, Fault> {
        if matches!(self.left, Left::Chunk(0)) {
            let length = u64::from_str_radix(std::str::from_utf8(&self.line().await?)?, 16)?;
            self.left = Left::Chunk(length);
            if length == 0 {
                self.line().await?;
                self.left = Left::Nothing;
            }
        }
        let left = match self.left {
            Left::Head => return Err(Fault::new("the head was not read")),
            Left::Nothing | Left::Bytes(0) => return Ok(Piece::End),
            Left::Bytes(left) | Left::Chunk(left) => left,
            Left::ToTheEnd => u64::MAX,
        };
        let mut bytes = vec![0; most.min(usize::try_from(left).unwrap_or(usize::MAX))];
        let read = self.stream.read(&mut bytes).await?;
        bytes.truncate(read);
        match &mut self.left {
            Left::ToTheEnd if read == 0 => return Ok(Piece::End),
            _ if read == 0 => return Ok(Piece::Lost),
            Left::Bytes(left) => *left -= read as u64,
            Left::Chunk(left) => {
                *left -= read as u64;
                if *left == 0 {
                    self.line().await?;
                }
            }
            _ => {}
        }
        Ok(Piece::Bytes(bytes))
    }
}

fn lost() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl Exchange for Http {
    async fn send(&mut self, piece: &[u8]) -> Outcome {
        if piece.is_empty() {
            return Ok(());
        }
        let framed = match self.chunked {
            true => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
            false => piece.to_vec(),
        };
        within(ANSWER_TIME, "sending", self.stream.write_all(&framed)).await??;
        Ok(())
    }

    async fn finish(&mut self) -> Outcome {
        if self.chunked {
            self.stream.write_all(b"0\r\n\r\n").await?;
        }
        Ok(())
    }

    async fn head(&mut self) -> Result<Response<()>, Fault> {
        within(ANSWER_TIME, "the response's head", self.response()).await?
    }

    async fn read(&mut self, most: usize) -> Result<Piece, Fault> {
        if matches!(self.left, Left::Nothing | Left::Bytes(0)) {
            return Ok(Piece::End);
        }
        let limit = self.hear_time;
        // The end of the connection is told apart here, before its error is only a text.
        let arrived: io::Result<bool> =
            within(limit, "the response's body", async { Ok(!self.stream.fill_buf().await?.is_empty()) })
                .await?;
        match arrived {
            Ok(false) if !matches!(self.left, Left::ToTheEnd) => Ok(Piece::Lost),
            Err(error) if ended(&error) => Ok(Piece::Lost),
            Err(error) => Err(error.into()),
            Ok(_) => within(limit, "the response's body", self.piece(most)).await?,
        }
    }

    async fn half_close(&mut self) -> Outcome {
        Ok(self.stream.shutdown().await?)
    }

    fn leave(self, how: Leave) {
        match how {
            Leave::Close => {}
            // Closing it then resets it.
            Leave::Reset => self.stream.get_ref().set_zero_linger().unwrap(),
        }
    }
}
