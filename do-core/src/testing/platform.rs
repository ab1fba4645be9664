//! PLATFORM.md: where our hosts are not the platform, or not each other. Made of the tables of the suite alone, so that
//! it is the same text on every machine, whatever ran there.

use super::{
    case::Needs,
    catalogue::{Listed, catalogue},
    difference::{Difference, HostKind, differences},
    driver::PanicCost,
    rules::{OTHERS, Rule, Topic, Treatment, rules},
};
use std::fmt::{self, Write as _};

const PURPOSE: &str = "\
# PLATFORM.md: what an object can rely on, and where hosts differ

For whoever decides whether to move an object from one host to another. An object runs on three: natively (**tokio**),
on Cloudflare Workers (**workerd** is their runtime; \"locally\" means it on a machine of one's own, \"in production\"
Cloudflare's network), and in the test **kit**. What the platform does is written down as rules with numbers, and each is
treated in one of four ways:

- hosts differ, and the [differences](#where-hosts-differ) say how. These are the ones to read before a move;
- the platform's way is [hidden](#what-is-hidden) behind one that is the same on all hosts;
- it is [not offered](#what-is-not-offered), or [only known](#what-is-only-known);
- it is [copied](#what-is-copied): every host does what the platform does.

Rules about Workers were seen in the local runtime; production was not tried. Cases of one suite hold all hosts to them:
`cargo xtask contract --all` runs it, `cargo xtask contract --host tokio d15` a part of it on one host.

This page is made of the suite's tables by `cargo xtask contract --platform`. To change it, change them:
`difference.rs` and `rules/` in do-core/src/testing.
";

/// What the letters of the rules stand for.
const AREAS: &[(char, &str)] = &[
    ('A', "Identity and routing"),
    ('B', "Lifecycle"),
    ('C', "Gates"),
    ('D', "WebSockets and hibernation"),
    ('E', "Alarms"),
    ('F', "SQL"),
    ('G', "Storage without SQL"),
];

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
        self.copied(f)?;
        self.cases(f)
    }
}

impl Page {
    fn differences(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n## Where hosts differ\n")?;
        for difference in differences() {
            writeln!(f, "- {} ({})", link(difference), difference.rules.join(", "))?;
        }
        differences().iter().try_for_each(|difference| self.difference(f, difference))
    }

    fn difference(&self, f: &mut fmt::Formatter<'_>, difference: &Difference) -> fmt::Result {
        writeln!(f, "\n### {}\n", headed(difference.title))?;
        writeln!(f, "| host | what happens |\n|---|---|")?;
        for host in HostKind::ALL.iter().rev() {
            writeln!(f, "| {} | {} |", host.name(), difference.on(*host))?;
        }
        writeln!(f)?;
        let rules_of = |treatment| {
            rules().filter(move |rule| rule.treatment == treatment && difference.rules.contains(&rule.number))
        };
        for rule in rules_of(Treatment::Differ) {
            writeln!(f, "The platform, by rule {}: {}\n", rule.number, rule.platform)?;
        }
        if let Some(why) = difference.excuse() {
            return writeln!(f, "No case: {why}");
        }
        writeln!(f, "Cases of `{}`:\n", difference.id)?;
        for case in self.0.iter().filter(|case| case.needs.cites().any(|id| id == difference.id)) {
            writeln!(f, "- {} ({})", case.name, hosts_of(&case.needs))?;
        }
        Ok(())
    }

    fn hidden(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## What is hidden\n\nAll hosts do the same here, and it is not what the platform does by itself.\n"
        )?;
        writeln!(f, "| rule | platform | here | cases |\n|---|---|---|---|")?;
        for rule in rules() {
            if let Treatment::Hide(ours) = rule.treatment {
                writeln!(f, "| {} | {} | {ours} | {} |", rule.number, rule.platform, self.shown(rule))?;
            }
        }
        writeln!(f, "\nOf rules that are copied, this is not:\n")?;
        for rule in rules() {
            if let Some(what) = rule.except {
                writeln!(f, "- **{}** {what}", rule.number)?;
            }
        }
        Ok(())
    }

    fn copied(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## What is copied\n\nAll hosts do what the platform does, up to the differences that are named."
        )?;
        for (letter, area) in AREAS {
            let of_area =
                |rule: &&Rule| rule.treatment == Treatment::Copy && rule.number.starts_with(*letter);
            let mut of_area = rules().filter(of_area).peekable();
            if of_area.peek().is_some() {
                writeln!(f, "\n### {letter}: {area}\n")?;
            }
            for rule in of_area {
                let except = rule.except.map(|what| format!(" But: {what}")).unwrap_or_default();
                writeln!(f, "- **{}** {}{except} ({})", rule.number, rule.platform, self.shown(rule))?;
            }
        }
        Ok(())
    }

    fn cases(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n## The cases\n\nWhat is shown of each rule; on all hosts, unless a difference says otherwise."
        )?;
        let kept = rules().filter(|rule| rule.treatment.is_kept()).map(Topic::Rule);
        for topic in kept.chain(OTHERS.iter().map(|word| Topic::Other(word))) {
            let mut of_topic = self.of(topic).peekable();
            if of_topic.peek().is_none() {
                continue;
            }
            let count = cases_in_words(self.of(topic).count());
            writeln!(f, "\n<details><summary>{topic}: {count}</summary>\n")?;
            for case in of_topic {
                writeln!(f, "- {}", case.name)?;
            }
            writeln!(f, "\n</details>")?;
        }
        Ok(())
    }

    fn of(&self, topic: Topic) -> impl Iterator<Item = &Listed> {
        self.0.iter().filter(move |case| Topic::of(case.name).contains(&topic))
    }

    /// How many cases show it, or why none does; and which differences are about it.
    fn shown(&self, rule: &'static Rule) -> String {
        let mut text = match rule.unshown {
            Some(why) => format!("no case: {}", why.trim_end_matches('.')),
            None => cases_in_words(self.of(Topic::Rule(rule)).count()),
        };
        for difference in rule.differences() {
            // Writing to a string cannot fail.
            let _ = write!(text, "; differs: {}", link(difference));
        }
        text
    }
}

/// A title as a heading.
fn headed(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// To the heading, by the name that a page's heading has as a target.
fn link(difference: &Difference) -> String {
    let anchor = difference.title.to_ascii_lowercase().replace(' ', "-");
    format!("[{}](#{anchor})", difference.title)
}

/// The hosts that a case holds to something.
fn hosts_of(needs: &Needs) -> String {
    let costs = |host: HostKind| match host {
        HostKind::Workerd => [PanicCost::Object, PanicCost::Isolate].as_slice(),
        _ => [PanicCost::Object].as_slice(),
    };
    let suits = |host: &&HostKind| costs(**host).iter().any(|cost| needs.unsuited(**host, *cost).is_none());
    let hosts: Vec<_> = HostKind::ALL.iter().filter(suits).map(|host| host.name()).collect();
    hosts.join(", ")
}

fn absent(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\n## What is not offered\n\n| rule | platform | why not, or what instead |\n|---|---|---|")?;
    for rule in rules() {
        if let Treatment::NotOffered(why) = rule.treatment {
            writeln!(f, "| {} | {} | {why} |", rule.number, rule.platform)?;
        }
    }
    writeln!(
        f,
        "\n## What is only known\n\nNothing here copies it and nothing relies on it.\n\n| rule | platform | why |\n|---|---|---|"
    )?;
    for rule in rules() {
        if let Treatment::Fact(why) = rule.treatment {
            writeln!(f, "| {} | {} | {why} |", rule.number, rule.platform)?;
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
            let area = AREAS.iter().any(|(letter, _)| rule.number.starts_with(*letter));
            assert!(area, "{}", rule.number);
        }
        for difference in differences() {
            assert!(page.contains(&format!("\n### {}\n", headed(difference.title))), "{}", difference.id);
            assert!(
                HostKind::ALL.iter().all(|host| page.contains(difference.on(*host))),
                "{}",
                difference.id
            );
        }
    }

    #[test]
    fn the_page_has_every_case_with_the_hosts_where_they_differ() {
        let page = platform_page();
        for case in catalogue() {
            assert!(page.contains(&format!("\n- {}\n", case.name)), "{}", case.name);
        }
        for line in [
            "- d6 a socket whose 101 is not returned stays in the list, open, until its other end is collected (workerd)\n",
            "- b11 a panic resets its object alone where panics unwind (kit, tokio, workerd)\n",
            "- b11 a panic costs every object its memory and its requests where panics abort (workerd)\n",
        ] {
            assert!(page.contains(line), "{line}");
        }
    }
}
