//! What the sync server adds to the smallest Worker, in bytes that are uploaded.

use super::build::{self, DEFAULT_CRATE, Plan};
use crate::problem::{Doing, Outcome};
use crate::wasm::Panic;
use crate::workspace::Workspace;
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use std::path::Path;

/// The smallest Worker, and the one that is measured against it.
const CRATES: [&str; 2] = ["benches/worker-hello", DEFAULT_CRATE];
/// The table's columns; sizes are in bytes.
const COLUMNS: [&str; 5] = ["wasm", "wasm-opt", "gzip", "index.js", "gzip"];

/// The sizes of one Worker, or the difference between two, as in [`COLUMNS`].
type Sizes = [i64; 5];

/// Builds all and prints the table, also the part of it that is done when a build fails.
///
/// # Errors
/// A build fails.
pub(crate) fn print(workspace: &Workspace) -> Outcome {
    let mut rows = Vec::new();
    let outcome = Panic::ALL.into_iter().try_for_each(|panic| compare(workspace, panic, &mut rows));
    print!("{}", table(&rows));
    outcome
}

/// Adds a row for each crate, and one for what the second has more than the first.
fn compare(workspace: &Workspace, panic: Panic, rows: &mut Vec<(String, Sizes)>) -> Outcome {
    let mut smallest = None;
    for folder in CRATES {
        let member = build::member(workspace, &workspace.root.join(folder))?;
        let mut plan = Plan::new(workspace, member, panic, false);
        // Apart from the folders that are served, because nothing else minifies.
        plan.out = workspace.target.join("workers/size").join(format!("{}-{}", member.name, panic.name()));
        (plan.minify, plan.optimiser) = (true, true);
        let sizes = measure(workspace, &plan)?;
        rows.push((format!("{} {}", panic.name(), member.name), sizes));
        match &smallest {
            None => smallest = Some(sizes),
            Some(smallest) => {
                rows.push((format!("{} difference", panic.name()), difference(&sizes, smallest)));
            }
        }
    }
    Ok(())
}

fn measure(workspace: &Workspace, plan: &Plan<'_>) -> Outcome<Sizes> {
    let built = build::build(workspace, plan)?;
    let (raw, js) = (built.folder.join("index_bg.wasm"), read(&built.folder.join("index.js"))?);
    let optimised = built.folder.join("optimised.wasm");
    build::optimise(&built.tools, &raw, &optimised)?;
    let optimised = read(&optimised)?;
    let sizes = [read(&raw)?.len(), optimised.len(), zipped(&optimised)?, js.len(), zipped(&js)?];
    Ok(sizes.map(|size| i64::try_from(size).unwrap_or(i64::MAX)))
}

fn read(file: &Path) -> Outcome<Vec<u8>> {
    fs::read(file).doing(file.display())
}

/// How long the bytes are after `gzip -9`.
fn zipped(bytes: &[u8]) -> Outcome<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).doing("gzip")?;
    Ok(encoder.finish().doing("gzip")?.len())
}

fn difference(large: &Sizes, small: &Sizes) -> Sizes {
    let mut difference = *large;
    for (left, right) in difference.iter_mut().zip(small) {
        *left -= right;
    }
    difference
}

fn table(rows: &[(String, Sizes)]) -> String {
    let line = |name: &str, cells: [String; 5]| {
        format!("{name:<24}{}\n", cells.map(|cell| format!("{cell:>12}")).concat())
    };
    let mut table = line("bytes", COLUMNS.map(str::to_owned));
    for (name, sizes) in rows {
        table += &line(name, sizes.map(|size| size.to_string()));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_row() {
        let (small, large) = ([10, 9, 8, 7, 6], [20, 18, 16, 7, 5]);
        let rows = [
            ("unwind hello".to_owned(), small),
            ("unwind difference".to_owned(), difference(&large, &small)),
        ];
        let expected = "\
bytes                           wasm    wasm-opt        gzip    index.js        gzip
unwind hello                      10           9           8           7           6
unwind difference                 10           9           8           0          -1
";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn zipped_is_smaller_for_what_repeats() {
        let zipped = zipped(&[0; 10_000]).unwrap();
        assert!((20..100).contains(&zipped), "{zipped}");
    }
}
