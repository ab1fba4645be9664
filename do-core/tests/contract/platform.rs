//! PLATFORM.md in the root of the repository.

use do_core::testing::platform_page;
use std::fs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../PLATFORM.md");

/// Writes it if it is not as it should be, or says so.
pub(crate) fn write(check: bool) -> Result<(), String> {
    let page = platform_page();
    if fs::read_to_string(FILE).is_ok_and(|old| old == page) {
        return Ok(());
    }
    if check {
        return Err("PLATFORM.md is out of date: `cargo xtask contract --platform` writes it anew".to_owned());
    }
    fs::write(FILE, page).map_err(|error| format!("PLATFORM.md: {error}"))?;
    eprintln!("PLATFORM.md was written");
    Ok(())
}
