//! The parsers of what strangers send, against any bytes: plain functions, so that the same check runs under a fuzzer,
//! over the inputs that are kept in tests/corpus, and over random ones.
//!
//! Each panics when a parser does something wrong, and returns whether the input was well-formed.

use crate::{
    Accept, Body, Close, CloseCode, CloseFrame, ErrorKind, ObjectId, ObjectName, Request, Tag, Upgrade,
    address, limits, offers_protocol,
    sql::statements::{split_first, without_trailing_blanks},
};
use http::{HeaderName, HeaderValue, Method, Uri, header};
use serde_json::Value;
use std::str;

pub use crate::tokio::ws_fuzz::{close_payload, frames};

/// One target.
pub type Target = fn(&[u8]) -> bool;

/// All targets, by the names of their folders in tests/corpus and of their programs in fuzz.
pub const TARGETS: &[(&str, Target)] = &[
    ("address", address),
    ("attachment", attachment),
    ("close_code", close_code),
    ("close_payload", close_payload),
    ("frames", frames),
    ("id", id),
    ("name", name),
    ("statements", statements),
    ("tags", tags),
    ("upgrade", upgrade),
];

/// The completion of an address (rule A12): the header `Host` in the first line, the request's target in the second.
///
/// # Panics
/// When what is completed is not absolute, or is completed once more to something else.
pub fn address(data: &[u8]) -> bool {
    let (host, target) = line(data);
    let Ok(uri) = Uri::try_from(target) else { return false };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri.clone();
    // An empty first line is no header.
    if let (false, Ok(host)) = (host.is_empty(), HeaderValue::from_bytes(host)) {
        request.headers_mut().insert(header::HOST, host);
    }
    if let Err(error) = address::complete_uri(&mut request) {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        return false;
    }
    let whole = request.uri().clone();
    assert!(whole.scheme().is_some() && whole.authority().is_some(), "{whole} is not absolute");
    assert_eq!(whole.query(), uri.query(), "the query changed");
    assert!(address::complete_uri(&mut request).is_ok() && *request.uri() == whole, "{whole} changes");
    true
}

/// An attachment of a socket (rule D26), which is kept as JSON.
///
/// # Panics
/// When one is kept that is too long or reads back as another value, or one is refused that is not too long.
pub fn attachment(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return false };
    let length = value.to_string().len();
    match Accept::new().attach(&value) {
        Ok(accept) => {
            let bytes = accept.into_parts().1.unwrap_or_default();
            assert!(bytes.len() <= limits::ATTACHMENT_BYTES, "{} bytes are kept", bytes.len());
            assert_eq!(serde_json::from_slice::<Value>(&bytes).ok(), Some(value), "it reads back otherwise");
            true
        }
        Err(error) => {
            assert_eq!(
                (error.kind(), length > limits::ATTACHMENT_BYTES),
                (ErrorKind::Limit, true),
                "{error}"
            );
            false
        }
    }
}

/// A close code and a reason that an object gives (rule D20): two bytes and text.
///
/// # Panics
/// When one is taken that must not be sent, or the answer to such a Close cannot be sent.
pub fn close_code(data: &[u8]) -> bool {
    let Some((number, reason)) = data.split_first_chunk::<2>() else { return false };
    let (number, reason) = (u16::from_be_bytes(*number), String::from_utf8_lossy(reason));
    let may_be_sent = (1_000..5_000).contains(&number) && ![1_004, 1_005, 1_006, 1_015].contains(&number);
    let code = CloseCode::new(number);
    assert_eq!(code.is_ok(), may_be_sent, "{number}");
    let answer = Close::new(number, reason.clone(), true).answer();
    let answered = answer.as_ref().and_then(CloseFrame::code).map(CloseCode::get);
    match number {
        1_005 | 1_006 | 1_015 => assert_eq!(answered, None),
        _ if may_be_sent => assert_eq!(answered, Some(number)),
        _ => assert_eq!(answered, Some(1_002)),
    }
    let Ok(code) = code else { return false };
    let frame = CloseFrame::new(code, reason.clone());
    assert_eq!(frame.is_ok(), reason.len() <= limits::CLOSE_REASON_BYTES, "{} bytes", reason.len());
    frame.is_ok_and(|frame| {
        assert_eq!((frame.code(), frame.reason()), (Some(code), &*reason));
        true
    })
}

/// The text of an id (rules A4, A5).
///
/// # Panics
/// When text is read that is no id, or an id is printed otherwise than it was read.
pub fn id(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let is_id = text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let read = ObjectId::parse_bytes(text);
    assert_eq!(read.is_ok(), is_id, "{text:?}");
    read.is_ok_and(|bytes| {
        assert_eq!(ObjectId::from_parts(bytes, None).to_string(), text.to_ascii_lowercase());
        true
    })
}

/// The name of an object (rules A1, A2, A9).
///
/// # Panics
/// When it changes, or its length is judged wrongly.
pub fn name(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let name = ObjectName::new(text);
    assert_eq!(name.is_ok(), text.len() <= limits::OBJECT_NAME_BYTES, "{} bytes", text.len());
    name.is_ok_and(|name| {
        assert_eq!(name.as_str(), text);
        true
    })
}

/// The statements of a text (rule F6).
///
/// # Panics
/// When something but blanks and comments is lost, or cutting does not end.
pub fn statements(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let (mut rest, mut parts) = (text, 0);
    while !rest.is_empty() {
        let (first, after) = split_first(rest);
        assert!(!first.is_empty() && rest.starts_with(first) && rest.ends_with(after), "{rest:?}");
        let between = &rest[first.len()..rest.len() - after.len()];
        assert_eq!(without_trailing_blanks(between), "", "lost in {rest:?}");
        assert!(after.is_empty() || first.contains(';'), "cut without a semicolon: {rest:?}");
        (rest, parts) = (after, parts + 1);
    }
    let kept = without_trailing_blanks(text);
    assert!(text.starts_with(kept), "{text:?}");
    assert_eq!(without_trailing_blanks(kept), kept, "{text:?}");
    parts > 0
}

/// The tags of a socket (rule D1), one a line.
///
/// # Panics
/// When one is lost or kept twice, or a limit is judged wrongly.
pub fn tags(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let (mut expected, mut legal) = (Vec::new(), true);
    for tag in text.split('\n') {
        legal &= tag.len() <= limits::TAG_BYTES;
        if !expected.contains(&tag) {
            expected.push(tag);
        }
    }
    legal &= expected.len() <= limits::TAGS_PER_SOCKET;
    match Accept::new().tags(text.split('\n')) {
        Ok(accept) => {
            let tags = accept.into_parts().0;
            assert!(legal, "{text:?} was taken");
            assert_eq!(tags.iter().map(Tag::as_str).collect::<Vec<_>>(), expected);
            true
        }
        Err(error) => {
            assert_eq!((error.kind(), legal), (ErrorKind::Limit, false), "{error}");
            false
        }
    }
}

/// The headers of an upgrade: the method in the first line, then a header a line, `name: value`.
///
/// # Panics
/// When a request is taken for a right upgrade that is none.
pub fn upgrade(data: &[u8]) -> bool {
    let (method, mut headers) = line(data);
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::from_bytes(method).unwrap_or_default();
    while !headers.is_empty() {
        let (header, after) = line(headers);
        headers = after;
        let colon = header.iter().position(|byte| *byte == b':').unwrap_or(header.len());
        let (name, value) = header.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            request.headers_mut().append(name, value);
        }
    }
    let offered = request.headers().get(header::SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
    if let Some(one) = offered.and_then(|list| list.split(',').next()) {
        assert!(offers_protocol(&request, one.trim()), "{one:?} was offered");
        if let Ok(Some(named)) = Accept::new().protocol(one.trim()).protocol_header() {
            assert_eq!(named.as_bytes(), one.trim().as_bytes());
        }
    }
    let right = Upgrade::of(&request) == Upgrade::WebSocket;
    assert_eq!(right, Upgrade::check(&request).is_ok());
    if right {
        let mut keys = request.headers().get_all(header::SEC_WEBSOCKET_KEY).iter();
        let key = keys.next().map_or(0, HeaderValue::len);
        assert_eq!((request.method(), key, keys.next()), (&Method::GET, 24, None));
    }
    right
}

/// The first line without its end, and what follows.
fn line(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use std::{collections::BTreeSet, fs, path::Path};

    #[test]
    fn every_input_of_the_corpus_passes_and_both_kinds_are_there() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        for (name, target) in TARGETS {
            let inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(Result::unwrap).collect();
            assert!(inputs.len() >= 6, "{name}: {} inputs", inputs.len());
            let well_formed = inputs.iter().filter(|input| target(&fs::read(input.path()).unwrap())).count();
            assert!((1..inputs.len()).contains(&well_formed), "{name}: {well_formed} of {}", inputs.len());
        }
    }

    #[test]
    fn every_folder_and_every_program_has_its_target() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let names = |folder: &str, end: &str| -> BTreeSet<String> {
            let files = fs::read_dir(root.join(folder)).unwrap();
            let name = |file: fs::DirEntry| file.file_name().into_string().unwrap();
            files.map(|file| name(file.unwrap()).strip_suffix(end).unwrap().to_owned()).collect()
        };
        let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names("tests/corpus", ""), targets);
        assert_eq!(names("fuzz/fuzz_targets", ".rs"), targets);
    }

    proptest! {
        #[test]
        fn no_target_panics_on_any_bytes(data in vec(any::<u8>(), 0..300)) {
            for (_, target) in TARGETS {
                target(&data);
            }
        }

        #[test]
        fn a4_an_id_reads_back_as_it_was_printed(bytes in any::<[u8; 32]>(), upper in any::<bool>()) {
            let text = ObjectId::from_parts(bytes, None).to_string();
            let text = if upper { text.to_uppercase() } else { text };
            prop_assert!(id(text.as_bytes()));
            prop_assert_eq!(ObjectId::parse_bytes(&text).unwrap(), bytes);
        }

        #[test]
        fn a5_an_id_with_one_wrong_letter_is_none(bytes in any::<[u8; 32]>(), at in 0_usize..64, wrong in "[^0-9a-fA-F]") {
            let mut text = ObjectId::from_parts(bytes, None).to_string();
            text.replace_range(at..=at, &wrong);
            prop_assert!(!id(text.as_bytes()));
        }

        #[test]
        fn a9_a_name_has_1024_bytes_at_most(text in ".{0,1100}") {
            prop_assert_eq!(name(text.as_bytes()), text.len() <= 1_024);
        }

        #[test]
        fn d1_tags_up_to_the_limits_are_kept(list in vec("[a-cé]{0,3}", 1..14), long in "[x€]{84,260}") {
            tags(list.join("\n").as_bytes());
            tags(long.as_bytes());
        }

        #[test]
        fn d20_codes_and_reasons_are_judged_by_number_and_length(code in 900_u16..5_100, reason in ".{0,140}") {
            close_code(&[&code.to_be_bytes(), reason.as_bytes()].concat());
        }

        #[test]
        fn d15_a_close_frame_reads_back_as_it_was_written(code in 900_u16..5_100, reason in ".{0,60}") {
            close_payload(&[&code.to_be_bytes(), reason.as_bytes()].concat());
        }

        #[test]
        fn d26_numbers_and_texts_of_an_attachment_read_back(
            real in any::<f64>().prop_filter("JSON has no others", |real| real.is_finite()),
            whole in any::<i64>(),
            text in ".{0,40}",
        ) {
            let value = serde_json::json!({ "real": real, "whole": whole, "text": text });
            prop_assert!(attachment(value.to_string().as_bytes()));
            let kept = Accept::new().attach(&value).unwrap().into_parts().1.unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), value);
        }

        #[test]
        fn f6_statements_that_were_joined_are_cut_apart_again(
            parts in vec("(SELECT|x|'a;b'|\"q;\"|/\\*;\\*/|\\[;\\]|1) [a-z]{1,4}", 1..6),
            gap in "( |\n|-- c;\n|/\\*;\\*/){0,3}",
        ) {
            let text = parts.iter().map(|part| format!("{part};")).collect::<Vec<_>>().join(&gap);
            let (mut rest, mut cut) = (text.as_str(), Vec::new());
            while !rest.is_empty() {
                let (first, after) = split_first(rest);
                cut.push(first.trim_end_matches(';').to_owned());
                rest = after;
            }
            // A comment before a statement that was not the first went with the gap.
            let words = |part: &String| part.replace("/*;*/", "").trim().to_owned();
            prop_assert_eq!(cut.iter().map(words).collect::<Vec<_>>(), parts.iter().map(words).collect::<Vec<_>>());
            prop_assert!(statements(text.as_bytes()));
        }

        #[test]
        fn a12_a_path_and_a_host_make_an_absolute_address(
            host in "[a-z]{1,9}(\\.[a-z]{1,5}){0,2}(:[1-9][0-9]{0,3})?",
            path in "(/[a-zA-Z0-9._~-]{0,6}){1,4}",
            query in "(\\?[a-z0-9=&]{0,9})?",
        ) {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = format!("{path}{query}").parse().unwrap();
            request.headers_mut().insert(header::HOST, host.parse().unwrap());
            address::complete_uri(&mut request).unwrap();
            prop_assert_eq!(request.uri().to_string(), format!("http://{host}{path}{query}"));
        }

        #[test]
        fn an_upgrade_with_a_right_key_is_one(key in any::<[u8; 16]>(), more in "[a-z]{1,9}(, [a-z]{1,9}){0,2}") {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            let key = STANDARD.encode(key);
            let headers = |key: &str| format!(
                "GET\nupgrade: {more}, websocket\nconnection: upgrade, {more}\nsec-websocket-version: 13\n\
                 sec-websocket-key: {key}\nsec-websocket-protocol: {more}"
            );
            prop_assert!(upgrade(headers(&key).as_bytes()));
            prop_assert!(!upgrade(headers(&key[1..]).as_bytes()));
        }
    }
}
