//! The math functions of SQLite, which the bundled build is compiled without (rule F12).
//!
//! They behave as SQLite's own: a text that looks like a number counts as one, anything else gives `NULL`, and so
//! does a result that is not a number.

use rusqlite::{
    Connection, Result,
    functions::{Context, FunctionFlags},
    types::{Value, ValueRef},
};

/// Adds them to a connection.
pub(super) fn register(conn: &Connection) -> Result<()> {
    for (name, function) in UNARY {
        conn.create_scalar_function(
            *name,
            1,
            FLAGS,
            move |c| Ok(number(c, 0).map(|n| function(n.as_f64()))),
        )?;
    }
    for (name, function) in ROUNDING {
        conn.create_scalar_function(*name, 1, FLAGS, move |c| {
            Ok(match number(c, 0) {
                Some(Number::Integer(i)) => Value::Integer(i),
                Some(Number::Real(r)) => Value::Real(function(r)),
                None => Value::Null,
            })
        })?;
    }
    for (name, function) in BINARY {
        conn.create_scalar_function(*name, 2, FLAGS, move |c| {
            Ok(number(c, 0).zip(number(c, 1)).map(|(a, b)| function(a.as_f64(), b.as_f64())))
        })?;
    }
    for (name, function) in LOGARITHMS {
        conn.create_scalar_function(*name, 1, FLAGS, move |c| Ok(positive(c, 0).map(function)))?;
    }
    conn.create_scalar_function("log", 2, FLAGS, |c| {
        let base = positive(c, 0).map(f64::ln).filter(|base| *base > 0.0);
        // SQLite looks at the type of the base alone, so that anything counts as the number which it begins with.
        let x = Some(leading_number(c.get_raw(1))).filter(|x| *x > 0.0);
        Ok(base.zip(x).map(|(base, x)| x.ln() / base))
    })?;
    conn.create_scalar_function("pi", 0, FLAGS, |_| Ok(std::f64::consts::PI))
}

/// Innocuous, so that views and triggers may call them.
const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

type Unary = (&'static str, fn(f64) -> f64);

const UNARY: &[Unary] = &[
    ("acos", f64::acos),
    ("acosh", acosh),
    ("asin", f64::asin),
    ("asinh", asinh),
    ("atan", f64::atan),
    ("atanh", atanh),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("degrees", |x| x * (180.0 / std::f64::consts::PI)),
    ("exp", f64::exp),
    ("radians", |x| x * (std::f64::consts::PI / 180.0)),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

const ROUNDING: &[Unary] =
    &[("ceil", f64::ceil), ("ceiling", f64::ceil), ("floor", f64::floor), ("trunc", f64::trunc)];

// As C's math library reckons them, which SQLite calls: Rust's own differ in the last digit.

fn acosh(x: f64) -> f64 {
    match x {
        LARGE.. => x.ln() + std::f64::consts::LN_2,
        2.0.. => (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln(),
        _ => (x - 1.0 + (2.0 * (x - 1.0) + (x - 1.0) * (x - 1.0)).sqrt()).ln_1p(),
    }
}

fn asinh(x: f64) -> f64 {
    let magnitude = x.abs();
    let positive = match magnitude {
        LARGE.. => magnitude.ln() + std::f64::consts::LN_2,
        2.0.. => (2.0 * magnitude + 1.0 / ((x * x + 1.0).sqrt() + magnitude)).ln(),
        _ => (magnitude + x * x / (1.0 + (x * x + 1.0).sqrt())).ln_1p(),
    };
    positive.copysign(x)
}

fn atanh(x: f64) -> f64 {
    let magnitude = x.abs();
    let twice = 2.0 * magnitude;
    let inner = match magnitude {
        ..0.5 => twice + twice * magnitude / (1.0 - magnitude),
        _ => twice / (1.0 - magnitude),
    };
    (0.5 * inner.ln_1p()).copysign(x)
}

/// Beyond this a square leaves nothing of the one that is added to it.
const LARGE: f64 = 268_435_456.0;

type Binary = (&'static str, fn(f64, f64) -> f64);

const BINARY: &[Binary] =
    &[("atan2", f64::atan2), ("mod", |a, b| a % b), ("pow", f64::powf), ("power", f64::powf)];

const LOGARITHMS: &[Unary] =
    &[("ln", f64::ln), ("log", f64::log10), ("log10", f64::log10), ("log2", f64::log2)];

#[derive(Clone, Copy)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    #[allow(clippy::cast_precision_loss)] // what SQLite does
    fn as_f64(self) -> f64 {
        match self {
            Self::Integer(i) => i as f64,
            Self::Real(r) => r,
        }
    }
}

fn number(context: &Context<'_>, index: usize) -> Option<Number> {
    match context.get_raw(index) {
        ValueRef::Integer(i) => Some(Number::Integer(i)),
        ValueRef::Real(r) => Some(Number::Real(r)),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
            // Rust also reads `inf` and `nan`, SQLite does not.
            if text.bytes().any(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
                return None;
            }
            text.parse().map(Number::Integer).or_else(|_| text.parse().map(Number::Real)).ok()
        }
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

fn positive(context: &Context<'_>, index: usize) -> Option<f64> {
    number(context, index).map(Number::as_f64).filter(|x| *x > 0.0)
}

/// As SQLite converts a value to a number where it must have one.
#[allow(clippy::cast_precision_loss)] // what SQLite does
fn leading_number(value: ValueRef<'_>) -> f64 {
    let bytes = match value {
        ValueRef::Null => return 0.0,
        ValueRef::Integer(i) => return i as f64,
        ValueRef::Real(r) => return r,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.trim_ascii_start(),
    };
    let digits = |from: usize| from + bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let sign = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut end = digits(sign(0));
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let from = end + 1 + sign(end + 1);
        // Without digits it is no exponent.
        end = if digits(from) > from { digits(from) } else { end };
    }
    std::str::from_utf8(&bytes[..end]).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f12_what_begins_like_a_number_counts_as_it_where_sqlite_wants_one() {
        for (text, number) in [
            ("5x", 5.0),
            (" -1.5e2e", -150.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+7", 7.0),
            ("", 0.0),
            (".", 0.0),
            ("x5", 0.0),
            ("inf", 0.0),
        ] {
            assert_eq!(
                leading_number(ValueRef::Text(text.as_bytes())).to_bits(),
                f64::to_bits(number),
                "{text}"
            );
            assert_eq!(
                leading_number(ValueRef::Blob(text.as_bytes())).to_bits(),
                f64::to_bits(number),
                "{text}"
            );
        }
        assert_eq!(leading_number(ValueRef::Blob(&[b'9', 0xff])).to_bits(), 9_f64.to_bits());
    }
}
