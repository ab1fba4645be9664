use super::{
    fuzz::{Outcome, decode},
    *,
};
use proptest::prelude::*;

const KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// A client's frame with the shortest length.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = header(first, payload.len());
    let mut masked = payload.to_vec();
    unmask(&mut masked, &mut KEY.clone());
    frame.extend(masked);
    frame
}

/// The header of a client's frame.
fn header(first: u8, len: usize) -> Vec<u8> {
    let mut header = vec![first];
    match len {
        0..=125 => header.push(0x80 | u8::try_from(len).unwrap()),
        126..=0xFFFF => {
            header.push(0x80 | 126);
            header.extend(u16::try_from(len).unwrap().to_be_bytes());
        }
        _ => {
            header.push(0x80 | 127);
            header.extend((len as u64).to_be_bytes());
        }
    }
    header.extend(KEY);
    header
}

fn whole(bytes: &[u8]) -> Outcome {
    decode(bytes, [], 1_000_000)
}

/// The code of the fault and how many bytes showed it.
fn fault(bytes: &[u8]) -> (u16, usize) {
    for len in 1..=bytes.len() {
        let (_, error) = decode(&bytes[..len], vec![1; len], 1_000_000);
        let at_once = decode(&bytes[..len], [], 1_000_000).1;
        assert_eq!(error, at_once, "after {len} bytes");
        if let Some(error) = error {
            return (error.code.get(), len);
        }
    }
    panic!("no fault");
}

#[test]
fn the_examples_of_the_rfc_are_read() {
    let hello = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58];
    assert_eq!(whole(&hello), (vec![Incoming::Message(Message::text("Hello"))], None));
    let ping = [0x89, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58];
    assert_eq!(whole(&ping), (vec![Incoming::Ping(Bytes::from_static(b"Hello"))], None));
}

#[test]
fn d8_empty_messages_are_messages() {
    let bytes = [frame(0x81, b""), frame(0x82, b""), frame(0x01, b""), frame(0x80, b"")].concat();
    let expected = [Message::text(""), Message::binary(""), Message::text("")].map(Incoming::Message);
    assert_eq!(whole(&bytes), (Vec::from(expected), None));
}

#[test]
fn control_frames_come_between_fragments() {
    let bytes = [
        frame(0x01, b"a\xE2\x82"),
        frame(0x89, b"1"),
        frame(0x00, b"\xAC"),
        frame(0x8A, b"2"),
        frame(0x00, b""),
        frame(0x80, b"b"),
        frame(0x88, b"\x03\xE8bye"),
        frame(0x81, b"unread"),
    ];
    let expected = vec![
        Incoming::Ping(Bytes::from_static(b"1")),
        Incoming::Pong,
        Incoming::Message(Message::text("a€b")),
        Incoming::Close(Close::new(1_000, "bye", true)),
    ];
    assert_eq!(whole(&bytes.concat()), (expected, None));
}

#[test]
fn faults_of_the_framing_are_1002_at_the_first_byte_that_shows_them() {
    // Reserved bits and opcodes.
    for first in [0xC1, 0xA1, 0x91, 0x83, 0x87, 0x8B, 0x8F] {
        assert_eq!(fault(&frame(first, b"x")), (1_002, 1), "{first:#x}");
    }
    // Fragmented control frames.
    for first in [0x08, 0x09, 0x0A] {
        assert_eq!(fault(&frame(first, b"")), (1_002, 1), "{first:#x}");
    }
    // Not masked; control frames that are too long.
    assert_eq!(fault(b"\x81\x01x"), (1_002, 2));
    assert_eq!(fault(&frame(0x89, &[0; 126])), (1_002, 2));
    assert_eq!(fault(&frame(0x88, &[0; 70_000])), (1_002, 2));
    // Lengths that are not in the shortest form, or negative.
    assert_eq!(fault(&[0x82, 0xFE, 0, 125, 0, 0, 0, 0]), (1_002, 4));
    assert_eq!(fault(&[0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0]), (1_002, 10));
    assert_eq!(fault(&[0x82, 0xFF, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]), (1_002, 10));
    // The order of fragments.
    assert_eq!(fault(&frame(0x80, b"x")), (1_002, 6));
    assert_eq!(fault(&[frame(0x01, b"x"), frame(0x82, b"y")].concat()), (1_002, 13));
    assert_eq!(fault(&[frame(0x82, b"x"), frame(0x00, b"y")].concat()), (1_002, 13));
}

#[test]
fn d15_close_frames_with_a_wrong_code_or_payload_are_1002() {
    assert_eq!(fault(&frame(0x88, b"x")), (1_002, 7));
    for code in [0_u16, 999, 1_004, 1_005, 1_006, 1_015, 1_016, 2_999, 5_000, u16::MAX] {
        assert_eq!(fault(&frame(0x88, &code.to_be_bytes())), (1_002, 8), "{code}");
    }
    for code in [1_000_u16, 1_003, 1_007, 1_014, 3_000, 4_999] {
        let close = Incoming::Close(Close::new(code, "", true));
        assert_eq!(whole(&frame(0x88, &code.to_be_bytes())), (vec![close], None));
    }
    assert_eq!(whole(&frame(0x88, b"")), (vec![Incoming::Close(Close::new(1_005, "", true))], None));
    assert_eq!(fault(&frame(0x88, b"\x03\xE8\xFF")).0, 1_007);
}

#[test]
fn d8_invalid_utf8_is_1007_at_the_first_byte_that_shows_it() {
    // As one frame, and cut into two after each byte: it is always found with the same byte of the text.
    for (text, wrong) in [
        (&b"abc\xFFdef"[..], 4),
        (b"\xCE\xBA\xE1\xBD\xB9\xED\xA0\x80edited", 7),
        (b"\xCE\xBA\xF4\x90\x80\x80x", 4),
        (b"\xC0\xAF", 1),
        (b"\xE2\x82x", 3),
    ] {
        assert_eq!(fault(&frame(0x81, text)), (1_007, 6 + wrong), "{text:x?}");
        for cut in 0..text.len() {
            let fragments = [frame(0x01, &text[..cut]), frame(0x80, &text[cut..])].concat();
            let headers = if wrong <= cut { 6 } else { 12 };
            assert_eq!(fault(&fragments), (1_007, headers + wrong), "{text:x?} cut at {cut}");
        }
    }
    // A character that never ends.
    assert_eq!(fault(&frame(0x81, b"a\xE2\x82")), (1_007, 9));
    assert_eq!(fault(&[frame(0x01, b"a\xE2"), frame(0x80, b"\x82")].concat()), (1_007, 15));
}

#[test]
fn d11_the_limit_is_judged_by_the_header() {
    let exact = [frame(0x02, &[1; 600]), frame(0x80, &[2; 400])].concat();
    let message = Message::binary([vec![1; 600], vec![2; 400]].concat());
    assert_eq!(decode(&exact, [], 1_000), (vec![Incoming::Message(message)], None));
    for too_long in [
        header(0x82, 1_001),
        header(0x81, usize::MAX >> 1),
        [frame(0x02, &[1; 600]), header(0x00, 401)].concat(),
        [frame(0x02, &[1; 600]), header(0x80, usize::MAX >> 1)].concat(),
    ] {
        let (events, error) = decode(&too_long, [], 1_000);
        assert_eq!((events, error.map(|e| e.code)), (vec![], Some(CloseCode::TOO_BIG)));
    }
    // Control frames do not count.
    assert_eq!(decode(&frame(0x89, b"ping"), [], 0).1, None);
}

#[test]
fn announced_bytes_reserve_nothing_and_large_messages_end_in_a_buffer_of_their_length() {
    let mut decoder = Decoder::default();
    let mut announced = header(0x82, 32 * 1_024 * 1_024);
    assert_eq!(decoder.decode(&mut Input::new(&mut announced), usize::MAX), Ok(None));
    assert_eq!(decoder.reserved(), 0);
    decoder.decode(&mut Input::new(&mut [7; 1_000]), usize::MAX).unwrap();
    assert_eq!(decoder.reserved(), 1_000);
    decoder.decode(&mut Input::new(&mut [7; 10]), usize::MAX).unwrap();
    assert_eq!(decoder.reserved(), 2_010);

    let mut bytes = frame(0x81, &[b'x'; 150_000]);
    let last = bytes.split_off(bytes.len() - 1);
    let mut decoder = Decoder::default();
    for piece in bytes.chunks_mut(65_536) {
        assert_eq!(decoder.decode(&mut Input::new(piece), usize::MAX), Ok(None));
    }
    assert_eq!(decoder.reserved(), 150_000);
    assert!(!decoder.is_idle());
    assert!(decoder.decode(&mut Input::new(&mut last.clone()), usize::MAX).unwrap().is_some());
    assert!(decoder.is_idle());
}

#[test]
fn nothing_is_kept_between_messages() {
    assert_eq!(size_of::<Decoder>(), size_of::<usize>());
    let bytes =
        [frame(0x81, b"one"), frame(0x02, b"t"), frame(0x89, b"!"), frame(0x80, b"wo"), frame(0x8A, b"")];
    let mut decoder = Decoder::default();
    let mut idle = Vec::new();
    for frame in &bytes {
        for byte in frame {
            decoder.decode(&mut Input::new(&mut [*byte]), 100).unwrap();
        }
        idle.push(decoder.is_idle());
    }
    assert_eq!(idle, [true, false, false, true, true]);
}

/// A message cut into fragments, with control frames between them, and the events it makes.
fn message() -> impl Strategy<Value = (Vec<u8>, Vec<Incoming>)> {
    let content = prop_oneof![
        ".{0,40}".prop_map(Message::from),
        "[é€😀x]{0,200}".prop_map(Message::from),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Message::from),
        (0_usize..70_000).prop_map(|len| Message::binary(vec![9; len])),
    ];
    let pings =
        proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..126)), 0..5);
    (content, pings).prop_map(|(message, pings)| {
        let opcode = if message.as_text().is_some() { 1 } else { 2 };
        let (mut rest, mut bytes, mut events) = (message.as_bytes(), Vec::new(), Vec::new());
        for (index, ping) in pings.iter().enumerate() {
            let (fragment, after) = rest.split_at(rest.len() / 2);
            rest = after;
            bytes.extend(frame(if index == 0 { opcode } else { 0 }, fragment));
            if let Some(ping) = ping {
                bytes.extend(frame(0x89, ping));
                events.push(Incoming::Ping(ping.clone().into()));
            }
        }
        bytes.extend(frame(0x80 | if pings.is_empty() { opcode } else { 0 }, rest));
        events.push(Incoming::Message(message));
        (bytes, events)
    })
}

proptest! {
    #[test]
    fn any_split_of_a_valid_stream_gives_the_same_events(
        messages in proptest::collection::vec(message(), 1..6),
        pieces in proptest::collection::vec(1_usize..2_000, 0..200),
        tiny in 0_usize..40,
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<Incoming> = messages.into_iter().flat_map(|(_, events)| events).collect();
        prop_assert_eq!(&whole(&bytes).0, &expected);
        let pieces: Vec<usize> = std::iter::repeat_n(1, tiny).chain(pieces).collect();
        prop_assert_eq!(decode(&bytes, pieces, 1_000_000), (expected, None));
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_splits_do_not_matter(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        piece in 1_usize..20,
        limit in 0_usize..300,
    ) {
        prop_assert_eq!(decode(&bytes, vec![piece; bytes.len()], limit), decode(&bytes, [], limit));
    }

    /// As above, but most of it passes the header checks.
    #[test]
    fn arbitrary_frames_never_panic_and_splits_do_not_matter(
        frames in proptest::collection::vec((0_u8..11, any::<bool>(), "[é€x\u{0}]{0,9}", any::<u8>()), 0..12),
        piece in 1_usize..20,
    ) {
        let mut bytes = Vec::new();
        for (opcode, fin, text, noise) in frames {
            let mut payload = text.into_bytes();
            if noise < 40 && !payload.is_empty() {
                payload.truncate(payload.len() - 1);
            }
            bytes.extend(frame(opcode | if fin { 0x80 } else { 0 }, &payload));
        }
        prop_assert_eq!(decode(&bytes, vec![piece; bytes.len()], 100), decode(&bytes, [], 100));
    }
}
