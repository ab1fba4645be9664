//! The command line of `cargo xtask workers`.

use crate::problem::{Doing, Outcome, Problem};
use crate::wasm::Panic;
use lexopt::{Arg, Parser};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Workers {
    /// How it is used.
    Help,
    /// A folder that workerd can serve.
    Build(Build),
    /// That, and workerd serving it.
    Dev(Dev),
    /// The tests that need Workers.
    Test,
    /// The table of sizes.
    Size,
}

/// What to build, and how.
#[derive(Debug, PartialEq)]
pub(crate) struct Build {
    /// The folder of the crate, relative to where we were started; `None` is the sync server's.
    pub(crate) crate_folder: Option<PathBuf>,
    /// Where to write; `None` is a folder under the target folder.
    pub(crate) out: Option<PathBuf>,
    /// Cargo's `dev` profile instead of `worker`.
    pub(crate) dev: bool,
    /// What a panic does.
    pub(crate) panic: Panic,
    /// Run wasm-opt.
    pub(crate) opt: bool,
    /// Minify the JavaScript.
    pub(crate) minify: bool,
    /// Add what the contract suite wants of a Worker.
    pub(crate) testing: bool,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            crate_folder: None,
            out: None,
            dev: false,
            panic: Panic::Unwind,
            opt: false,
            minify: false,
            testing: false,
        }
    }
}

/// What to serve, and where.
#[derive(Debug, PartialEq)]
pub(crate) struct Dev {
    /// What to build.
    pub(crate) build: Build,
    /// The address to listen on; port 0 is a free one.
    pub(crate) listen: SocketAddr,
    /// Where the objects' data is kept; `None` is a folder under the target folder.
    pub(crate) data: Option<PathBuf>,
    /// Variables of the Worker, over those of its `wrangler.toml`.
    pub(crate) vars: BTreeMap<String, String>,
}

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Reads the arguments after `workers`.
///
/// # Errors
/// A command or an argument that does not exist, is given twice, or has a bad value or none.
pub(crate) fn parse(arguments: &[OsString]) -> Outcome<Workers> {
    let Some((command, rest)) = arguments.split_first() else { return Ok(Workers::Help) };
    match command.to_str() {
        Some("build") => {
            options(rest, false).map(|dev| dev.map_or(Workers::Help, |dev| Workers::Build(dev.build)))
        }
        Some("dev") => options(rest, true).map(|dev| dev.map_or(Workers::Help, Workers::Dev)),
        Some("test") => none(rest, Workers::Test),
        Some("size") => none(rest, Workers::Size),
        Some("help" | "--help" | "-h") => Ok(Workers::Help),
        _ => Err(Problem::new(format!("unknown command \"workers {}\"", command.display()))),
    }
}

/// A command that takes no arguments but the one for help.
fn none(arguments: &[OsString], command: Workers) -> Outcome<Workers> {
    let mut parser = Parser::from_args(arguments);
    match parser.next().doing("workers")? {
        None => Ok(command),
        Some(Arg::Short('h') | Arg::Long("help")) => Ok(Workers::Help),
        Some(other) => Err(unexpected(other)),
    }
}

/// The arguments of `build`, or those of `dev`; `None` when help is asked for.
fn options(arguments: &[OsString], serve: bool) -> Outcome<Option<Dev>> {
    let mut parser = Parser::from_args(arguments);
    let (mut build, mut panic, mut listen, mut data) = (Build::default(), None, None, None);
    let mut vars = BTreeMap::new();
    while let Some(argument) = parser.next().doing("workers")? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Long("dev") => build.dev = true,
            Arg::Long("panic") => once("--panic", &mut panic, panic_mode(&value(&mut parser)?)?)?,
            Arg::Long("out") if !serve => once("--out", &mut build.out, value(&mut parser)?.into())?,
            Arg::Long("opt") if !serve => build.opt = true,
            Arg::Long("minify") if !serve => build.minify = true,
            Arg::Long("testing") if !serve => build.testing = true,
            Arg::Long("listen") if serve => once("--listen", &mut listen, address(&value(&mut parser)?)?)?,
            Arg::Long("data") if serve => once("--data", &mut data, value(&mut parser)?.into())?,
            Arg::Long("var") if serve => {
                let (name, value) = variable(&value(&mut parser)?)?;
                vars.insert(name, value);
            }
            Arg::Value(folder) if build.crate_folder.is_none() => build.crate_folder = Some(folder.into()),
            Arg::Value(more) => {
                return Err(Problem::new(format!("more than one crate folder: {}", more.display())));
            }
            Arg::Short(_) | Arg::Long(_) => return Err(unexpected(argument)),
        }
    }
    build.panic = panic.unwrap_or(Panic::Unwind);
    Ok(Some(Dev { build, listen: listen.unwrap_or(LISTEN), data, vars }))
}

fn unexpected(argument: Arg<'_>) -> Problem {
    Problem::new(argument.unexpected().to_string())
}

fn once<T>(flag: &str, slot: &mut Option<T>, value: T) -> Outcome {
    match slot.replace(value) {
        Some(_) => Err(Problem::new(format!("{flag} is given twice"))),
        None => Ok(()),
    }
}

/// The value of an option; an empty one is never meant.
fn value(parser: &mut Parser) -> Outcome<OsString> {
    let value = parser.value().doing("workers")?;
    if value.is_empty() { Err(Problem::new("an option has an empty value")) } else { Ok(value) }
}

fn panic_mode(value: &OsString) -> Outcome<Panic> {
    Panic::ALL.into_iter().find(|panic| value == panic.name()).ok_or_else(|| {
        Problem::new(format!("--panic wants unwind or abort, not {:?}", value.display().to_string()))
    })
}

fn address(value: &OsString) -> Outcome<SocketAddr> {
    let text = value.to_string_lossy();
    // The one name that needs no name server.
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric
        .as_deref()
        .unwrap_or(&text)
        .parse()
        .map_err(|_| Problem::new(format!("--listen wants an address such as 127.0.0.1:8080, not {text:?}")))
}

fn variable(value: &OsString) -> Outcome<(String, String)> {
    let split = value.to_str().and_then(|text| text.split_once('=')).filter(|(name, _)| !name.is_empty());
    let Some((name, value)) = split else {
        return Err(Problem::new(format!("--var wants NAME=VALUE, not {:?}", value.display().to_string())));
    };
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Workers, String> {
        let words: Vec<OsString> =
            line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect();
        parse(&words).map_err(|problem| problem.to_string())
    }

    #[test]
    fn the_defaults_are_a_small_build_that_unwinds() {
        assert_eq!(words("build"), Ok(Workers::Build(Build::default())));
        let dev = Dev { build: Build::default(), listen: LISTEN, data: None, vars: BTreeMap::new() };
        assert_eq!(words("dev"), Ok(Workers::Dev(dev)));
        assert_eq!(words("test"), Ok(Workers::Test));
        assert_eq!(words("size"), Ok(Workers::Size));
        for help in ["", "help", "--help", "build -h", "dev --help", "size --help"] {
            assert_eq!(words(help), Ok(Workers::Help), "{help}");
        }
    }

    #[test]
    fn options_are_read_in_any_order() {
        let build = Build {
            crate_folder: Some("a".into()),
            out: Some("b".into()),
            dev: true,
            panic: Panic::Abort,
            opt: true,
            minify: true,
            testing: true,
        };
        let line = "build --out b --dev a --panic=abort --opt --minify --testing";
        assert_eq!(words(line), Ok(Workers::Build(build)));
        let dev = Dev {
            build: Build { crate_folder: Some("a".into()), ..Build::default() },
            listen: "[::1]:0".parse().unwrap(),
            data: Some("d".into()),
            vars: [("A", "1=2"), ("B", "")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        };
        assert_eq!(words("dev --var A=1=2 a --listen [::1]:0 --data=d --var B="), Ok(Workers::Dev(dev)));
        assert!(matches!(words("dev --listen localhost:1"), Ok(Workers::Dev(dev)) if dev.listen.port() == 1));
    }

    #[test]
    fn each_fault_has_its_line() {
        for (line, fault) in [
            ("bild", r#"unknown command "workers bild""#),
            ("build --listen 127.0.0.1:1", "invalid option '--listen'"),
            ("dev --out x", "invalid option '--out'"),
            ("dev --testing", "invalid option '--testing'"),
            ("size x", "unexpected argument \"x\""),
            ("build a b", "more than one crate folder: b"),
            ("build --panic", "workers: missing argument for option '--panic'"),
            ("build --panic=both", r#"--panic wants unwind or abort, not "both""#),
            ("build --out=", "an option has an empty value"),
            ("build --out a --out b", "--out is given twice"),
            ("dev --listen 8080", r#"--listen wants an address such as 127.0.0.1:8080, not "8080""#),
            (
                "dev --listen example.invalid:1",
                r#"--listen wants an address such as 127.0.0.1:8080, not "example.invalid:1""#,
            ),
            ("dev --var A", r#"--var wants NAME=VALUE, not "A""#),
            ("dev --var =1", r#"--var wants NAME=VALUE, not "=1""#),
        ] {
            assert_eq!(words(line), Err(fault.to_owned()), "{line}");
        }
    }
}
