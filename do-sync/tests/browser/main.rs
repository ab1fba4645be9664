//! The JavaScript client in real Chromium: a room that dies and returns, a hole in the sequence, a network that goes
//! and comes back, a second tab of the same member.
//!
//! Needs `chromium` and `chromedriver` on `PATH`; `cargo xtask test --only browser` installs them. Without the usual
//! harness, because this program is the server too: `serve ADDR:PORT FOLDER`.

#[cfg(not(target_arch = "wasm32"))]
mod driver;
#[cfg(not(target_arch = "wasm32"))]
#[path = "../../../examples/sync-server/tests/common/program.rs"]
mod program;
#[cfg(not(target_arch = "wasm32"))]
mod real;
#[cfg(not(target_arch = "wasm32"))]
mod scripted;
#[cfg(not(target_arch = "wasm32"))]
mod stories;

#[cfg(target_arch = "wasm32")]
fn main() {}

#[cfg(not(target_arch = "wasm32"))]
#[tokio::main]
async fn main() -> std::process::ExitCode {
    use std::process::ExitCode;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, address, data] = arguments.as_slice()
        && command == "serve"
    {
        let Err(error) = real::serve(address, data.as_ref()).await else { return ExitCode::SUCCESS };
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let run = async || {
        driver::tell("a room that dies", async |browser| stories::of_a_room_that_dies(browser).await).await
            & driver::tell("holes and networks", async |browser| {
                stories::of_holes_and_networks(browser).await
            })
            .await
    };
    if run().await { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
