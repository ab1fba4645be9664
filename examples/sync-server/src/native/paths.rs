//! Names of files as text: UTF-8 stays as it is, anything else is escaped so that JSON can carry it.

use std::{ffi::OsStr, path::Path};

/// `path` as text, with `/` between its parts. A part that is UTF-8 stays as it is, `%` included. In a part that
/// is not, each byte that is not part of a valid sequence becomes `%XX` in upper case, and a literal `%` becomes
/// `%25`, so that the bytes of that part can be had back.
///
/// A file whose UTF-8 name looks like an escaped one reads the same as the escaped one; the price of leaving
/// every ordinary name alone.
///
/// ```
/// use std::path::Path;
/// use sync_server::native::paths::encode;
///
/// assert_eq!(encode(Path::new("docs/100%.txt")), "docs/100%.txt");
/// # #[cfg(unix)] {
/// use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
/// assert_eq!(encode(Path::new(OsStr::from_bytes(b"100%/caf\xe9 5%"))), "100%/caf%E9 5%25");
/// # }
/// ```
pub fn encode(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for part in path.components() {
        // The root directory is itself a slash: `/srv` must not become `//srv`.
        if !text.is_empty() && !text.ends_with('/') {
            text.push('/');
        }
        match part {
            std::path::Component::RootDir => text.push('/'),
            part => encode_part(part.as_os_str(), &mut text),
        }
    }
    text
}

fn encode_part(part: &OsStr, text: &mut String) {
    if let Some(utf8) = part.to_str() {
        text.push_str(utf8);
        return;
    }
    for chunk in part.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => text.push_str("%25"),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_names_stay_as_they_are() {
        for name in ["a.txt", "100%.txt", "%FF", "ä/ö 漢字.rs", ".env", "a\nb", "a\\b"] {
            assert_eq!(encode(Path::new(name)), name);
        }
    }

    #[test]
    fn the_root_directory_is_one_slash() {
        assert_eq!(encode(Path::new("/")), "/");
        assert_eq!(encode(Path::new("/srv//notes/")), "/srv/notes");
    }

    #[cfg(unix)]
    #[test]
    fn invalid_bytes_are_escaped_and_so_is_a_percent_sign_beside_them() {
        use std::os::unix::ffi::OsStrExt;
        let check = |bytes: &[u8], text: &str| assert_eq!(encode(Path::new(OsStr::from_bytes(bytes))), text);
        check(b"\xff", "%FF");
        check(b"a\xff%b", "a%FF%25b");
        check(b"\xc3\xa4\xc3", "ä%C3");
        check(b"\xf0\x9f\x92", "%F0%9F%92");
        check(b"50%/\x80/50%", "50%/%80/50%");
    }
}
