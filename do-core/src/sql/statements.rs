//! Cuts a text into SQL statements: natively because rusqlite does not tell where the first one ends, on Workers
//! because the platform refuses a comment after the last and leaves the rows of the others unread, which keeps the turn
//! from being committed when they write.
//!
//! The rules are those of `sqlite3_complete`: a semicolon ends a statement unless it is in a string, a quoted
//! name or a comment, and `CREATE TRIGGER` ends only at `;END;`.

/// The first statement of `text`, and what comes after it without the blanks and comments in between.
///
/// Semicolons before the first word belong to the statement, as for SQLite itself. The rest is empty exactly when
/// there is nothing more to run.
pub(crate) fn split_first(text: &str) -> (&str, &str) {
    // Nearly every text is one statement: nothing to look for then.
    if !text.contains(';') {
        return (text, "");
    }
    let mut state = State::Start;
    let mut at = 0;
    while let Some((token, length)) = next_token(&text[at..]) {
        at += length;
        if token == Token::Semicolon && matches!(state, State::Normal | State::Explain | State::TriggerEnd) {
            return (&text[..at], skip_blanks(&text[at..]));
        }
        state = state.after(token);
    }
    (text, "")
}

/// `text` without the blanks and comments at its end (rule F6).
#[cfg(any(test, target_arch = "wasm32", all(feature = "testing", feature = "tokio")))]
pub(crate) fn without_trailing_blanks(text: &str) -> &str {
    let (mut at, mut end) = (0, 0);
    while let Some((token, length)) = next_token(&text[at..]) {
        at += length;
        if token != Token::Blank {
            end = at;
        }
    }
    &text[..end]
}

/// `text` without leading blanks and comments.
fn skip_blanks(text: &str) -> &str {
    let mut at = 0;
    while let Some((Token::Blank, length)) = next_token(&text[at..]) {
        at += length;
    }
    &text[at..]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Semicolon,
    Blank,
    Create,
    End,
    Explain,
    Temp,
    Trigger,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing but blanks and semicolons so far.
    Start,
    /// In a statement that the next semicolon ends.
    Normal,
    /// After `EXPLAIN`.
    Explain,
    /// After `CREATE`, perhaps `TEMP`.
    Create,
    /// In the body of a trigger.
    Trigger,
    /// In the body of a trigger, after a semicolon.
    TriggerSemicolon,
    /// After `;END`.
    TriggerEnd,
}

impl State {
    fn after(self, token: Token) -> Self {
        match (self, token) {
            (state, Token::Blank) => state,
            (Self::Start, Token::Semicolon) => Self::Start,
            (Self::Start, Token::Explain) => Self::Explain,
            (Self::Start | Self::Explain, Token::Create) => Self::Create,
            // `EXPLAIN QUERY PLAN CREATE TRIGGER`
            (Self::Explain, Token::Other) => Self::Explain,
            (Self::Create, Token::Temp) => Self::Create,
            (Self::Create, Token::Trigger) => Self::Trigger,
            (Self::Trigger | Self::TriggerSemicolon | Self::TriggerEnd, Token::Semicolon) => {
                Self::TriggerSemicolon
            }
            (Self::TriggerSemicolon, Token::End) => Self::TriggerEnd,
            (Self::Trigger | Self::TriggerSemicolon | Self::TriggerEnd, _) => Self::Trigger,
            _ => Self::Normal,
        }
    }
}

/// The kind and the length in bytes of the first token; `None` at the end. What is never closed reaches to the
/// end, as for SQLite.
fn next_token(text: &str) -> Option<(Token, usize)> {
    let bytes = text.as_bytes();
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |i| from + i + end.len());
    Some(match (*bytes.first()?, bytes.get(1)) {
        (b';', _) => (Token::Semicolon, 1),
        (b' ' | b'\t' | b'\n' | b'\r' | 0x0c, _) => (Token::Blank, 1),
        (b'-', Some(b'-')) => (Token::Blank, until("\n", 2)),
        // At the very end of a text it begins no comment, but is an error.
        (b'/', Some(b'*')) if bytes.len() > 2 => (Token::Blank, until("*/", 2)),
        // A doubled quote inside reads as two strings next to each other, which ends at the same place.
        (b'\'', _) => (Token::Other, until("'", 1)),
        (b'"', _) => (Token::Other, until("\"", 1)),
        (b'`', _) => (Token::Other, until("`", 1)),
        (b'[', _) => (Token::Other, until("]", 1)),
        (byte, _) if is_word(byte) => {
            let length = bytes.iter().position(|b| !is_word(*b)).unwrap_or(bytes.len());
            (keyword(&text[..length]), length)
        }
        _ => (Token::Other, 1),
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn keyword(word: &str) -> Token {
    [
        ("create", Token::Create),
        ("end", Token::End),
        ("explain", Token::Explain),
        ("temp", Token::Temp),
        ("temporary", Token::Temp),
        ("trigger", Token::Trigger),
    ]
    .into_iter()
    .find_map(|(name, token)| word.eq_ignore_ascii_case(name).then_some(token))
    .unwrap_or(Token::Other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(mut text: &str) -> Vec<&str> {
        let mut parts = Vec::new();
        while !text.is_empty() {
            let (first, rest) = split_first(text);
            parts.push(first);
            text = rest;
        }
        parts
    }

    #[test]
    fn a_semicolon_ends_a_statement_only_where_it_is_one() {
        assert_eq!(all("SELECT 1"), ["SELECT 1"]);
        assert_eq!(all("SELECT 1; "), ["SELECT 1;"]);
        assert_eq!(all("SELECT 1; -- done\n /* ; */"), ["SELECT 1;"]);
        assert_eq!(all("A;\n B"), ["A;", "B"]);
        assert_eq!(
            all("/* a; */ A '; ''' \"a;\" [b;] `c;` -- d;\n; B"),
            ["/* a; */ A '; ''' \"a;\" [b;] `c;` -- d;\n;", "B"]
        );
        assert_eq!(all("; A; ; B"), ["; A;", "; B"]);
        assert_eq!(all("A 'open; B"), ["A 'open; B"]);
        assert_eq!(all("A; /* open"), ["A;"]);
        assert_eq!(all("A; /*"), ["A;", "/*"], "too short for a comment");
        assert_eq!(all(";"), [";"]);
    }

    #[test]
    fn a_trigger_ends_at_its_end() {
        let trigger =
            "CREATE TEMP TRIGGER a AFTER INSERT ON t BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; SELECT 2; END;";
        assert_eq!(all(&format!("{trigger} A;")), [trigger, "A;"]);
        let explained = "explain query plan create trigger a after insert on t begin select 1; end;";
        assert_eq!(all(&format!("{explained}B")), [explained, "B"]);
        assert_eq!(all("CREATE TABLE a(b); END;"), ["CREATE TABLE a(b);", "END;"]);
    }

    #[test]
    fn f6_what_follows_the_last_token_is_cut_off() {
        for (text, kept) in [
            ("SELECT 1", "SELECT 1"),
            ("SELECT 1; -- done", "SELECT 1;"),
            ("SELECT 1 /* a */ -- b\n ", "SELECT 1"),
            ("SELECT '-- no comment'", "SELECT '-- no comment'"),
            ("/* a */ SELECT 1", "/* a */ SELECT 1"),
            ("SELECT 'open -- ", "SELECT 'open -- "),
            ("-- only", ""),
            ("SELECT 1 /*", "SELECT 1 /*"),
            ("", ""),
        ] {
            assert_eq!(without_trailing_blanks(text), kept);
        }
    }

    proptest! {
        #[test]
        fn nothing_but_blanks_is_lost_and_nothing_panics(text in "[a-z;'\" \n*/\\-é]{0,40}") {
            let kept: String = all(&text).concat();
            let significant = |s: &str| s.chars().filter(|c| !" \n".contains(*c)).count();
            prop_assert!(significant(&kept) <= significant(&text));
            prop_assert!(all(&text).iter().all(|part| text.contains(part)));
        }
    }
}
