//! Turns cargo's wasm file into the module and the JavaScript that a Worker is made of: `xtask-bindgen IN.wasm FOLDER`
//! writes `index_bg.wasm` and `index.js`, with the options that `worker-build` gives to the `wasm-bindgen` command.
//!
//! The library behind that command, without its test runner, whose HTTP and TLS dependencies are most of its build time.
//! Its version is always the one that the Workers are built with: both depend on exactly one `wasm-bindgen-shared`,
//! of which cargo allows one in a lock file, because it has a `links` key.

use anyhow::{Result, bail};
use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, folder] = arguments.as_slice() else { bail!("usage: xtask-bindgen IN.wasm FOLDER") };
    Bindgen::new()
        .input_path(input)
        .out_name("index")
        .module(true)?
        .typescript(false)
        .reset_state_function(true)
        .force_enable_abort_handler(true)
        .generate(folder)
}
