//! PLATFORM.md: where our hosts are not the platform, or not each other. Made of the tables of the suite alone, so that
//! it is the same text on every machine, whatever ran there.

use super::{
    catalogue::{Listed, catalogue},
    difference::{Difference, HostKind, differences},
    rules::{OTHERS, Rule, Topic, Treatment, UNSHOWN, rules},
};
use std::fmt::{self, Write as _};

const PURPOSE: &str = "\
# PLATFORM.md: where hosts differ

What the platform does, rule by rule, and what the hosts of this family do with it: the test kit, the native host
(tokio), and Cloudflare's own runtime (workerd) under our adapter. The cases of the contract suite hold each of them to it.

This page is made of the suite's own tables by `cargo xtask contract --all`. Change it there: do-core/src/testing,
`difference.rs` and `rules/`.
";

/// The text of PLATFORM.md.
pub fn platform_page() -> String {
    Page(catalogue()).to_string()
}

struct Page(Vec<Listed>);

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PURPOSE)?;
        self.differences(f)?;
        self.hidden(f)?;
        absent(f)?;
        self.copied(f)
    }
}

impl Page {
    fn differences(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## Documented differences")?;
        for difference in differences() {
            writeln!(f, "\n### {}\n\n| | |\n|---|---|", difference.id)?;
            writeln!(f, "| rules | {} |", difference.rules.join(", "))?;
            for host in HostKind::ALL {
                writeln!(f, "| {} | {} |", host.name(), difference.on(*host))?;
            }
            writeln!(f, "| cases | {} |", self.cases_of(difference))?;
        }
        writeln!(f, "\n## Rules that each host keeps in its own way\n")?;
        writeln!(f, "| rule | platform | differences |\n|---|---|---|")?;
        for rule in rules().filter(|rule| rule.treatment == Treatment::Differ) {
            let ids: Vec<&str> = rule.differences().map(|difference| difference.id).collect();
            let how = rule.unshown.map_or_else(|| ids.join(", "), str::to_owned);
            writeln!(f, "| {} | {} | {how} |", rule.number, rule.platform)?;
        }
        Ok(())
    }

    fn hidden(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## What is hidden\n\nAll hosts do the same, and it is not what the platform does by itself.\n"
        )?;
        writeln!(f, "| rule | platform | here | cases |\n|---|---|---|---|")?;
        for rule in rules() {
            if let Treatment::Hide(ours) = rule.treatment {
                writeln!(f, "| {} | {} | {ours} | {} |", rule.number, rule.platform, self.shown(rule))?;
            }
        }
        Ok(())
    }

    fn copied(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## What is copied\n\nAll hosts do what the platform does, up to the differences above.\n"
        )?;
        for rule in rules().filter(|rule| rule.treatment == Treatment::Copy) {
            let except = rule.except.map(|what| format!(" Except: {what}")).unwrap_or_default();
            writeln!(f, "- **{}** {}{except} ({})", rule.number, rule.platform, self.shown(rule))?;
        }
        let count = |word: &&'static str| {
            let cases =
                self.0.iter().filter(|case| Topic::of(case.name).contains(&Topic::Other(word))).count();
            (cases > 0).then(|| format!("{word}: {}", cases_in_words(cases)))
        };
        let others: Vec<String> = OTHERS.iter().filter_map(count).collect();
        writeln!(f, "\nBeside the rules, cases hold all hosts to what has no number: {}.", others.join(", "))
    }

    /// How many cases show it, or why none does; and which differences are about it.
    fn shown(&self, rule: &'static Rule) -> String {
        let shows = |case: &&Listed| Topic::of(case.name).contains(&Topic::Rule(rule));
        let mut text = match rule.unshown {
            Some(why) => format!("no case: {why}"),
            None => cases_in_words(self.0.iter().filter(shows).count()),
        };
        for difference in rule.differences() {
            // Writing to a string cannot fail.
            let _ = write!(text, "; differs: {}", difference.id);
        }
        text
    }

    fn cases_of(&self, difference: &Difference) -> String {
        if let Some((_, why)) = UNSHOWN.iter().find(|(id, _)| *id == difference.id) {
            return format!("none: {why}");
        }
        let mut text = String::new();
        for case in self.0.iter().filter(|case| case.needs.cites().any(|id| id == difference.id)) {
            let comma = if text.is_empty() { "" } else { "; " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma}{}", case.name);
        }
        text
    }
}

fn absent(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\n## What is not offered, and what is only known\n")?;
    writeln!(f, "| rule | platform | why there is no case |\n|---|---|---|")?;
    for rule in rules() {
        match rule.treatment {
            Treatment::NotOffered(why) => {
                writeln!(f, "| {} | {} | Not offered. {why} |", rule.number, rule.platform)?;
            }
            Treatment::Fact(why) => writeln!(f, "| {} | {} | {why} |", rule.number, rule.platform)?,
            Treatment::Copy | Treatment::Hide(_) | Treatment::Differ => {}
        }
    }
    Ok(())
}

fn cases_in_words(count: usize) -> String {
    match count {
        1 => "1 case".to_owned(),
        _ => format!("{count} cases"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_repository_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../PLATFORM.md");
        let checked_in = std::fs::read_to_string(file).unwrap();
        assert!(checked_in == platform_page(), "{file} is not: `cargo xtask contract --platform` writes it");
    }

    #[test]
    fn the_page_has_every_rule_and_every_difference() {
        let page = platform_page();
        for rule in rules() {
            assert!(page.contains(rule.platform), "{}", rule.number);
        }
        for difference in differences() {
            assert!(page.contains(&format!("\n### {}\n", difference.id)), "{}", difference.id);
            assert!(
                HostKind::ALL.iter().all(|host| page.contains(difference.on(*host))),
                "{}",
                difference.id
            );
        }
        assert!(page.contains("| cases | b17a a client that closed"), "{page}");
    }
}
