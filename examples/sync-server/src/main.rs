//! `sync-server <folder>`: see the library.

use std::process::ExitCode;
use sync_server::native::{
    args::{Command, UsageError},
    run,
};

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let args = match Command::parse(std::env::args_os().skip(1), |name| std::env::var_os(name)) {
        Ok(Command::Serve(args)) => args,
        Ok(Command::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}");
            return UsageError::EXIT_CODE.into();
        }
    };
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("sync-server: {fault}");
            ExitCode::FAILURE
        }
    }
}
