//! Sync server.

#[cfg(not(target_arch = "wasm32"))]
pub mod native;
