//! Every limit of the platform that this crate enforces, each with the rule of the contract it mirrors.
//!
//! One module, so that a reader can compare them with the platform's documentation at a glance. Limits that
//! a native host lets its embedder change are only the defaults here.

use std::time::Duration;

/// Longest name of an object, in UTF-8 bytes (rule A9; the platform drops longer ones, we refuse them).
pub const OBJECT_NAME_BYTES: usize = 1_024;

/// Most distinct tags on one socket (rule D1).
pub const TAGS_PER_SOCKET: usize = 10;

/// Longest tag, in UTF-8 bytes (rule D1; the platform's message says characters but counts bytes).
pub const TAG_BYTES: usize = 256;

/// Longest attachment of a socket, in serialized bytes (rule D26). The platform allows 16,384 including the
/// envelope that its structured clone adds, for which 16 bytes are reserved here on every host.
pub const ATTACHMENT_BYTES: usize = 16_368;

/// Longest side of an auto-response pair, in UTF-8 bytes (rule D28).
pub const AUTO_RESPONSE_BYTES: usize = 2_048;

/// Longest reason of a Close frame, in UTF-8 bytes (rule D20, RFC 6455 section 5.5).
pub const CLOSE_REASON_BYTES: usize = 123;

/// Longest inbound WebSocket message, in bytes (rule D11).
pub const MESSAGE_BYTES: usize = 32 * 1_024 * 1_024;

/// Most hibernatable sockets of one object (rule D5).
pub const SOCKETS_PER_OBJECT: usize = 32_768;

/// An idle object leaves memory after this time (rule B2).
pub const IDLE: Duration = Duration::from_secs(10);

/// `block_concurrency_while` may take this long (rule B10).
pub const BLOCK_CONCURRENCY: Duration = Duration::from_secs(30);

/// `block_concurrency_while` may nest this deep (rule B10).
pub const BLOCK_CONCURRENCY_DEPTH: usize = 64;

/// Transactions may nest this deep (rule F18). No rule of the platform, where the stack ends somewhere beyond it: two
/// frames of JavaScript stand between a transaction and the next.
pub const TRANSACTION_DEPTH: usize = 64;

/// A peer that does not answer our Close frame is dropped after this time (rules D21 to D24).
pub const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// Retries of a failing alarm after its first run (rule E8).
pub const ALARM_RETRIES: u32 = 6;

/// A run of an alarm's handler has failed after this time (rule E7).
pub const ALARM_RUN: Duration = Duration::from_secs(15 * 60);

/// Delay before the first retry of an alarm; doubles with each (rule E8).
pub const ALARM_BACKOFF: Duration = Duration::from_secs(2);

/// Longest delay between retries of an alarm (rule E8).
pub const ALARM_BACKOFF_CAP: Duration = Duration::from_secs(1_024);

/// Largest time an alarm takes, in ms since the epoch: what the platform calls the year 2189, which is two days more
/// (rule E1).
pub const ALARM_MAX_MS: i64 = 6_942_758_399_999;

/// Largest integer that SQL takes and gives exactly on every host (rule F3).
pub const SQL_INTEGER_MAX: i64 = (1 << 53) - 1;

/// Most bound parameters of one statement (rule F15).
pub const SQL_PARAMETERS: usize = 100;

/// Most columns of a table or a result (rule F15).
pub const SQL_COLUMNS: usize = 100;

/// Longest statement text, in bytes (rule F15).
pub const SQL_TEXT_BYTES: usize = 100_000;

/// Longest `LIKE` or `GLOB` pattern, in bytes (rule F15).
pub const SQL_LIKE_BYTES: usize = 50;

/// Most terms of a compound `SELECT` (rule F15).
pub const SQL_COMPOUND_SELECT: usize = 5;

/// Deepest expression (rule F15).
pub const SQL_EXPRESSION_DEPTH: usize = 100;

/// Most arguments of an SQL function (rule F15; production).
pub const SQL_FUNCTION_ARGUMENTS: usize = 32;

/// Largest result that `exec` collects, in bytes. No rule of the platform, whose limit is the isolate's memory;
/// `for_each` has none.
pub const SQL_RESULT_BYTES: usize = 64 * 1_024 * 1_024;

/// Longest string, blob or row in SQL, in bytes (rule F16; production).
pub const SQL_VALUE_BYTES: usize = 2_000_000;
