//! The command line, read completely before anything starts: what it returns can be used as it is.

use lexopt::{Arg, Parser, ValueExt};
use sha2::{Digest, Sha256};
use std::{
    ffi::{OsStr, OsString},
    fmt, fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

/// What `--help` prints.
pub const USAGE: &str = "\
Broadcasts the changes of a folder to every connected editor.

Usage: sync-server <FOLDER> [OPTIONS]

Arguments:
  <FOLDER>  The folder to watch. Ignored files (.gitignore, .ignore) and .git are not reported.

Options:
  --listen ADDR   Address to listen on; port 0 picks a free one [default: 127.0.0.1:8080]
  --data DIR      Where to keep the latest changes
                  [default: $XDG_STATE_HOME/sync-server/<hash of the folder's path>]
  --idle SECONDS  After how long without events the room leaves memory [default: 10]
  -h, --help      Print this help
  -V, --version   Print the version
";

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const DEFAULT_IDLE_SECONDS: u32 = 10;

/// A checked command line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Args {
    /// The folder to watch: canonical, and a directory at the time of the check.
    pub folder: PathBuf,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Where to keep data: absolute, need not exist, and is not the watched folder.
    pub data: PathBuf,
    /// How long the room stays in memory without events; whole seconds, at least one.
    pub idle: Duration,
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Serve.
    Serve(Args),
    /// Print this text on standard output and leave with success.
    Print(String),
}

/// Why a command line cannot be followed: one line, for standard error, with exit code [`UsageError::EXIT_CODE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(String);

impl UsageError {
    /// The exit code that goes with it.
    pub const EXIT_CODE: u8 = 2;

    fn new(message: impl Into<String>) -> Self {
        // A name or a value may contain line feeds; the error must stay one line.
        Self(message.into().replace(['\n', '\r'], " "))
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sync-server: {} (see --help)", self.0)
    }
}

impl std::error::Error for UsageError {}

impl From<lexopt::Error> for UsageError {
    fn from(error: lexopt::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl Command {
    /// Reads the arguments of this process (the first one, its name, left out) and looks at the folder. `env` is
    /// asked for environment variables.
    ///
    /// # Errors
    /// [`UsageError`] for a missing folder, a folder that cannot be used, and any flag that is unknown, repeated, or
    /// has a bad value or none.
    pub fn parse(
        args: impl IntoIterator<Item = OsString>,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, UsageError> {
        let mut parser = Parser::from_args(args);
        let (mut folder, mut listen, mut data, mut idle) = (None, None, None, None);
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(Self::Print(USAGE.to_owned())),
                Arg::Short('V') | Arg::Long("version") => return Ok(Self::Print(version())),
                Arg::Long("listen") => once("--listen", &mut listen, parse_listen(&parser.value()?)?)?,
                Arg::Long("data") => once("--data", &mut data, parser.value()?)?,
                Arg::Long("idle") => once("--idle", &mut idle, parse_idle(&parser.value()?)?)?,
                Arg::Value(value) if folder.is_none() => folder = Some(value),
                Arg::Value(value) => {
                    return Err(UsageError::new(format!("more than one folder: {}", value.display())));
                }
                Arg::Short(_) | Arg::Long(_) => return Err(arg.unexpected().into()),
            }
        }
        let folder = folder.ok_or_else(|| UsageError::new("name the folder to watch"))?;
        let folder = check_folder(Path::new(&folder))?;
        let data = match data {
            Some(data) => check_data(Path::new(&data), &folder)?,
            None => default_data(&folder, env)?,
        };
        let idle = idle.unwrap_or(Duration::from_secs(DEFAULT_IDLE_SECONDS.into()));
        Ok(Self::Serve(Args { folder, listen: listen.unwrap_or(DEFAULT_LISTEN), data, idle }))
    }
}

fn version() -> String {
    concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"), "\n").to_owned()
}

fn once<T>(flag: &str, slot: &mut Option<T>, value: T) -> Result<(), UsageError> {
    match slot.replace(value) {
        Some(_) => Err(UsageError::new(format!("{flag} is given twice"))),
        None => Ok(()),
    }
}

fn parse_listen(value: &OsStr) -> Result<SocketAddr, UsageError> {
    let bad = || {
        UsageError::new(format!(
            "--listen wants an address such as 127.0.0.1:8080, not {:?}",
            value.display().to_string()
        ))
    };
    let text = value.to_str().ok_or_else(bad)?;
    // The one name that needs no name server.
    let text = match text.strip_prefix("localhost:") {
        Some(port) => &format!("127.0.0.1:{port}"),
        None => text,
    };
    text.parse().map_err(|_| bad())
}

fn parse_idle(value: &OsString) -> Result<Duration, UsageError> {
    let bad = || {
        let value = value.display().to_string();
        UsageError::new(format!("--idle wants whole seconds from 1 to {}, not {value:?}", u32::MAX))
    };
    // `parse` takes a plus sign, which nobody means.
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = value.clone().parse_with(|text| {
        if digits(text) {
            text.parse::<u32>().map_err(|error| error.to_string())
        } else {
            Err("no digits".to_owned())
        }
    });
    match seconds {
        Ok(seconds @ 1..) => Ok(Duration::from_secs(seconds.into())),
        _ => Err(bad()),
    }
}

fn check_folder(folder: &Path) -> Result<PathBuf, UsageError> {
    let real = fs::canonicalize(folder)
        .map_err(|error| UsageError::new(format!("cannot watch {}: {}", quoted(folder), reason(&error))))?;
    if !real.is_dir() {
        return Err(UsageError::new(format!("cannot watch {}: it is not a folder", quoted(folder))));
    }
    Ok(real)
}

fn check_data(data: &Path, folder: &Path) -> Result<PathBuf, UsageError> {
    let fault = |text: &str| UsageError::new(format!("cannot keep data in {}: {text}", quoted(data)));
    if data.as_os_str().is_empty() {
        return Err(UsageError::new("--data wants a directory, not an empty name"));
    }
    let absolute = std::path::absolute(data).map_err(|error| fault(&reason(&error)))?;
    match fs::canonicalize(&absolute) {
        Ok(real) if real == folder => Err(fault("it is the watched folder itself")),
        Ok(real) if !real.is_dir() => Err(fault("it is not a directory")),
        Ok(real) => Ok(real),
        // It is made when the server starts.
        Err(_) => Ok(absolute),
    }
}

/// A directory of its own for each folder: the name is a digest of the bytes of the path, so any name will do.
fn default_data(folder: &Path, env: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, UsageError> {
    // The XDG rules say that a relative path is to be treated as not set.
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        UsageError::new(
            "neither XDG_STATE_HOME nor HOME is set: say with --data where to keep the latest changes",
        )
    })?;
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let hash: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    check_data(&state.join("sync-server").join(hash), folder)
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Command, String> {
        let env = |name: &str| (name == "HOME").then(|| OsString::from("/home/someone"));
        Command::parse(args.iter().map(OsString::from), env).map_err(|error| error.to_string())
    }

    fn served(args: &[&str]) -> Args {
        match parse(args) {
            Ok(Command::Serve(args)) => args,
            other => panic!("{other:?}"),
        }
    }

    /// The error without the parts that all have.
    fn fault(args: &[&str]) -> String {
        let error = parse(args).unwrap_err();
        let error = error.strip_prefix("sync-server: ").unwrap().strip_suffix(" (see --help)").unwrap();
        assert!(!error.contains('\n'));
        error.to_owned()
    }

    #[test]
    fn the_defaults_are_those_of_the_interface() {
        let directory = tempfile::tempdir().unwrap();
        let args = served(&[directory.path().to_str().unwrap()]);
        assert_eq!(args.folder, directory.path().canonicalize().unwrap());
        assert_eq!(
            (args.listen.to_string().as_str(), args.idle),
            ("127.0.0.1:8080", Duration::from_secs(10))
        );
        assert_eq!(args.data.parent(), Some(Path::new("/home/someone/.local/state/sync-server")));
        assert_eq!(args.data.file_name().unwrap().len(), 32);
    }

    #[test]
    fn flags_are_taken_in_both_forms_and_in_any_place() {
        let spaced = served(&["--listen", "127.0.0.1:0", "/", "--data", "/data-x", "--idle", "3"]);
        let joined = served(&["/", "--idle=3", "--data=/data-x", "--listen=localhost:0"]);
        assert_eq!(spaced, joined);
        assert_eq!(
            (spaced.listen.to_string().as_str(), spaced.idle),
            ("127.0.0.1:0", Duration::from_secs(3))
        );
        assert_eq!(spaced.data, Path::new("/data-x"));
        assert_eq!(served(&["/", "--listen=[::1]:80"]).listen.to_string(), "[::1]:80");
    }

    #[test]
    fn help_and_version_need_no_folder() {
        for help in ["-h", "--help"] {
            assert_eq!(parse(&[help]), Ok(Command::Print(USAGE.to_owned())));
        }
        assert_eq!(parse(&["--version"]), Ok(Command::Print("sync-server 0.1.0\n".to_owned())));
    }

    #[test]
    fn each_fault_has_its_line() {
        assert_eq!(fault(&[]), "name the folder to watch");
        assert_eq!(fault(&["/nowhere/x"]), "cannot watch \"/nowhere/x\": it does not exist");
        assert_eq!(fault(&[""]), "cannot watch \"\": it does not exist");
        assert_eq!(fault(&["/", "/tmp"]), "more than one folder: /tmp");
        assert_eq!(fault(&["/", "--port", "1"]), "invalid option '--port'");
        assert_eq!(fault(&["/", "-x"]), "invalid option '-x'");
        assert_eq!(fault(&["/", "--idle"]), "missing argument for option '--idle'");
        assert_eq!(fault(&["/", "--idle=1", "--idle=1"]), "--idle is given twice");
        assert_eq!(fault(&["/", "--data=/x", "--data=/x"]), "--data is given twice");
        assert_eq!(fault(&["/", "--data="]), "--data wants a directory, not an empty name");
        assert_eq!(fault(&["/", "--data=/"]), "cannot keep data in \"/\": it is the watched folder itself");
        for idle in ["0", "-1", "1.5", "+1", "", "ten", "4294967296"] {
            let expected = format!("--idle wants whole seconds from 1 to 4294967295, not {idle:?}");
            assert_eq!(fault(&["/", &format!("--idle={idle}")]), expected);
        }
        for listen in ["8080", "127.0.0.1", "127.0.0.1:65536", "example.invalid:80", "", "a\nb"] {
            let expected = format!("--listen wants an address such as 127.0.0.1:8080, not {listen:?}");
            assert_eq!(fault(&["/", &format!("--listen={listen}")]), expected);
        }
    }

    #[test]
    fn a_file_is_no_folder_and_no_data_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert_eq!(fault(&[path]), format!("cannot watch {path:?}: it is not a folder"));
        assert_eq!(
            fault(&["/", "--data", path]),
            format!("cannot keep data in {path:?}: it is not a directory")
        );
    }

    #[test]
    fn the_data_directory_follows_the_environment() {
        let data = |vars: &[(&str, &str)]| {
            let env = |name: &str| {
                vars.iter().find(|(var, _)| *var == name).map(|(_, value)| OsString::from(value))
            };
            match Command::parse(["/".into()], env) {
                Ok(Command::Serve(args)) => Ok(args.data.parent().unwrap().to_owned()),
                other => Err(other.unwrap_err().to_string()),
            }
        };
        assert_eq!(data(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), Ok(PathBuf::from("/s/sync-server")));
        let home = Ok(PathBuf::from("/h/.local/state/sync-server"));
        assert_eq!(data(&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")]), home);
        assert_eq!(data(&[("XDG_STATE_HOME", ""), ("HOME", "/h")]), home);
        assert!(data(&[]).unwrap_err().contains("say with --data"));
    }

    #[cfg(unix)]
    #[test]
    fn paths_need_not_be_utf8_and_have_directories_of_their_own() {
        use std::os::unix::ffi::OsStrExt;
        let directory = tempfile::tempdir().unwrap();
        let data = [b"\xff".as_slice(), b"\xfe"].map(|name| {
            let folder = directory.path().join(OsStr::from_bytes(name));
            fs::create_dir(&folder).unwrap();
            let parse = || Command::parse([folder.clone().into()], |_| Some("/home".into()));
            let (Ok(Command::Serve(first)), Ok(Command::Serve(second))) = (parse(), parse()) else {
                panic!()
            };
            assert_eq!(first, second);
            assert_eq!(first.folder, folder.canonicalize().unwrap());
            first.data
        });
        assert_ne!(data[0], data[1]);
    }
}
