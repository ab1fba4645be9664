//! The runner: one step after the other, output as it comes, stop at the first that fails.

use crate::problem::{Outcome, Problem};
use crate::workspace::Workspace;
use std::time::{Duration, Instant};

/// One check with a name.
#[derive(Debug)]
pub(crate) struct Step {
    /// What `--only` takes.
    pub(crate) name: &'static str,
    /// One line for `--list`.
    pub(crate) about: &'static str,
    /// Runs with `--full` only.
    pub(crate) long: bool,
    /// The check itself.
    pub(crate) run: fn(&Workspace) -> Outcome,
}

/// Runs the steps until one fails and prints the time of each. `false` when one failed.
pub(crate) fn run(steps: &[Step], workspace: &Workspace) -> bool {
    let began = Instant::now();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut failed: Option<(&str, Problem)> = None;
    for step in steps {
        println!("== {}", step.name);
        let started = Instant::now();
        let outcome = (step.run)(workspace);
        let took = started.elapsed();
        times.push((step.name, took));
        if let Err(problem) = outcome {
            failed = Some((step.name, problem));
            break;
        }
        println!("ok {} {}\n", step.name, seconds(took));
    }
    print!("{}", table(&times, failed.as_ref().map(|(name, _)| *name), steps.len(), began.elapsed()));
    match failed {
        None => true,
        Some((name, problem)) => {
            println!("\nFAILED {name}: {problem}\nthis step alone: cargo xtask test --only {name}");
            false
        }
    }
}

/// The closing table: a line for each step that ran, and the total.
fn table(times: &[(&str, Duration)], failed: Option<&str>, steps: usize, total: Duration) -> String {
    let mut lines = String::from("== times\n");
    for (name, took) in times {
        let mark = if failed == Some(name) { "  FAILED" } else { "" };
        lines += &format!("{name:<14} {:>9}{mark}\n", seconds(*took));
    }
    let skipped = steps.saturating_sub(times.len());
    let note = if skipped == 0 { String::new() } else { format!("  {skipped} not run") };
    lines + &format!("{:<14} {:>9}{note}\n", "total", seconds(total))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_the_failed_step_and_counts_the_rest() {
        let times = [("fmt", Duration::from_millis(940)), ("clippy", Duration::from_millis(12_340))];
        let expected = "== times\nfmt                 0.9s\nclippy             12.3s  FAILED\n\
                        total              13.3s  2 not run\n";
        assert_eq!(table(&times, Some("clippy"), 4, Duration::from_millis(13_280)), expected);
    }
}
