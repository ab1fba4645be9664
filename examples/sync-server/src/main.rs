//! `sync-server <folder>`: see the library.

use std::{io::Write, process::ExitCode};
use sync_server::native::{args, run};

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let result = match args::Command::parse(std::env::args_os().skip(1), |name| std::env::var_os(name)) {
        Ok(args::Command::Serve(args)) => run(args).await.map_err(|fault| fault.to_string()),
        // Not `print!`, which panics when nobody reads on, as in `--help | head -1`.
        Ok(args::Command::Print(text)) => {
            std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
        }
        Err(error) => {
            eprintln!("{error}");
            return args::UsageError::EXIT_CODE.into();
        }
    };
    if let Err(fault) = result {
        eprintln!("sync-server: {fault}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
