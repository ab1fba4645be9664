//! The smallest Worker in Rust: `cargo xtask workers size` measures what the others add to it.
#![cfg(target_arch = "wasm32")]

use worker::{Context, Env, Request, Response, Result, event};

#[event(fetch)]
async fn fetch(_request: Request, _env: Env, _context: Context) -> Result<Response> {
    Response::ok("hello")
}
