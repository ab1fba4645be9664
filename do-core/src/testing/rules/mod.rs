//! The rules by number: what the platform does, and what our hosts do with it. With the differences, what PLATFORM.md
//! is made of.

mod objects;
mod sockets;
mod storage;

use super::difference::{Difference, differences};
use std::fmt;

/// One rule of the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// A letter for the area and a number: `D11`, and `D11b` for one that was added between two.
    pub number: &'static str,
    /// What the platform does.
    pub platform: &'static str,
    /// What our hosts do with it.
    pub treatment: Treatment,
    /// The part of a copied rule that is not copied.
    pub except: Option<&'static str>,
    /// Why no case can show it, for a rule that our hosts keep.
    pub unshown: Option<&'static str>,
}

/// What our hosts do with a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Treatment {
    /// All hosts show what the platform does, up to the [`Difference`]s that name the rule.
    Copy,
    /// All hosts show this instead.
    Hide(&'static str),
    /// Hosts are meant to differ: the [`Difference`]s that name the rule say how.
    Differ,
    /// Not offered, for this reason.
    NotOffered(&'static str),
    /// Known and nothing to copy, for this reason.
    Fact(&'static str),
}

impl Treatment {
    /// Whether hosts can be held to it, so that there is a case.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::Copy | Self::Hide(_) | Self::Differ)
    }
}

impl Rule {
    const fn of(number: &'static str, platform: &'static str, treatment: Treatment) -> Self {
        Self { number, platform, treatment, except: None, unshown: None }
    }

    const fn copy(number: &'static str, platform: &'static str) -> Self {
        Self::of(number, platform, Treatment::Copy)
    }

    const fn hide(number: &'static str, platform: &'static str, ours: &'static str) -> Self {
        Self::of(number, platform, Treatment::Hide(ours))
    }

    const fn differ(number: &'static str, platform: &'static str) -> Self {
        Self::of(number, platform, Treatment::Differ)
    }

    const fn absent(number: &'static str, platform: &'static str, why: &'static str) -> Self {
        Self::of(number, platform, Treatment::NotOffered(why))
    }

    const fn fact(number: &'static str, platform: &'static str, why: &'static str) -> Self {
        Self::of(number, platform, Treatment::Fact(why))
    }

    const fn except(mut self, what: &'static str) -> Self {
        self.except = Some(what);
        self
    }

    const fn unshown(mut self, why: &'static str) -> Self {
        self.unshown = Some(why);
        self
    }

    /// The differences that are about it.
    pub fn differences(&self) -> impl Iterator<Item = &'static Difference> + use<> {
        let number = self.number;
        differences().iter().filter(move |difference| difference.rules.contains(&number))
    }
}

/// All rules, in their order.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [objects::RULES, sockets::RULES, storage::RULES].into_iter().flatten()
}

/// What a case is about: the word, or one of the words, that its name begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topic {
    /// A rule.
    Rule(&'static Rule),
    /// What has no number on the platform.
    Other(&'static str),
}

/// The words that names of cases may begin with instead of a rule.
pub(super) const OTHERS: &[&str] = &["body", "migration", "panic", "response", "schedule"];

impl Topic {
    /// What the name of a case begins with; empty for a name that begins with none of them.
    ///
    /// `b17a` is the part a of B17.
    pub fn of(case: &str) -> Vec<Self> {
        let mut words = case.split(' ').peekable();
        let first = words.peek().copied().unwrap_or_default();
        if let Some(other) = OTHERS.iter().find(|other| **other == first) {
            return vec![Self::Other(other)];
        }
        let mut topics: Vec<Self> = Vec::new();
        for rule in words.map_while(rule_of) {
            if !topics.contains(&Self::Rule(rule)) {
                topics.push(Self::Rule(rule));
            }
        }
        topics
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.number,
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn rule_of(word: &str) -> Option<&'static Rule> {
    let whole = rules().find(|rule| rule.number.eq_ignore_ascii_case(word));
    let part = || {
        let of = word.strip_suffix(|c: char| c.is_ascii_lowercase()).filter(|of| of.len() > 1)?;
        rules().find(|rule| rule.number.eq_ignore_ascii_case(of))
    };
    whole.or_else(part)
}

/// Differences that no case shows, and why not. It goes on after a colon.
pub(super) const UNSHOWN: &[(&str, &str)] = &[
    ("early-calls", "it is a race, which can end either way."),
    ("unsendable", "cases see such a response from outside, where all hosts answer 500."),
    (
        "handshakes",
        "clients of the suite make right ones. Tests of the native host and of sync-server make the others.",
    ),
    (
        "sql-limits",
        "the suite runs with the local limits everywhere. Those of production have tests of the native host.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::catalogue::catalogue;

    #[test]
    fn every_rule_is_there_once_and_in_order() {
        let areas = [('A', 14), ('B', 19), ('C', 10), ('D', 35), ('E', 18), ('F', 22), ('G', 7)];
        let plain = areas.into_iter().flat_map(|(area, last)| (1..=last).map(move |n| format!("{area}{n}")));
        let mut expected: Vec<String> = plain.collect();
        for (after, added) in [("D11", "D11b"), ("E4", "E4b")] {
            let at = expected.iter().position(|number| number == after).unwrap();
            expected.insert(at + 1, added.to_owned());
        }
        assert_eq!(rules().map(|rule| rule.number).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_rule_is_one_sentence_or_more() {
        for rule in rules() {
            let ours = match rule.treatment {
                Treatment::Hide(text) | Treatment::NotOffered(text) | Treatment::Fact(text) => Some(text),
                Treatment::Copy | Treatment::Differ => None,
            };
            for text in [Some(rule.platform), ours, rule.except, rule.unshown].into_iter().flatten() {
                assert!(text.ends_with('.') && !text.contains(['\n', '|']), "{}: {text:?}", rule.number);
            }
            assert!(rule.treatment.is_kept() || rule.unshown.is_none(), "{}", rule.number);
        }
    }

    #[test]
    fn a_name_begins_with_its_topics() {
        let names = |case: &str| Topic::of(case).iter().map(Topic::name).collect::<Vec<_>>();
        assert_eq!(names("d15 d22 a clean close"), ["D15", "D22"]);
        assert_eq!(names("b17a a client that closed"), ["B17"]);
        assert_eq!(names("b17a b17b a client"), ["B17"]);
        assert_eq!(names("d11b nothing is buffered without a bound"), ["D11b"]);
        assert_eq!(names("body of a request"), ["body"]);
        assert_eq!(names("e4 success in b2"), ["E4"]);
        assert!(names("a99 nothing").is_empty());
        assert!(names("a name").is_empty());
        assert!(names("").is_empty());
    }

    #[test]
    fn every_case_begins_with_a_rule_that_is_kept_and_has_a_name_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for case in catalogue() {
            let topics = Topic::of(case.name);
            assert!(!topics.is_empty(), "{:?} begins with no rule", case.name);
            for topic in topics {
                let kept = !matches!(topic, Topic::Rule(rule) if !rule.treatment.is_kept());
                assert!(kept, "{:?} shows a rule that no host keeps", case.name);
            }
            assert!(seen.insert(case.name), "{:?} is there twice", case.name);
        }
    }

    #[test]
    fn differences_are_told_apart_and_are_about_rules_that_are_kept() {
        let mut seen = std::collections::BTreeSet::new();
        for difference in differences() {
            assert!(seen.insert(difference.id), "{:?} is there twice", difference.id);
            assert!(difference.id != "long", "the word for cases that take too long");
            assert!(!difference.rules.is_empty(), "{:?} is about nothing", difference.id);
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-');
            assert!(difference.title.chars().all(plain), "{:?}: {:?}", difference.id, difference.title);
            for number in difference.rules {
                let rule = rules().find(|rule| rule.number == *number);
                let known = rule.is_some_and(|rule| rule.treatment.is_kept()) || OTHERS.contains(number);
                assert!(known, "{:?}: {number}", difference.id);
            }
        }
    }

    #[test]
    fn a_case_cites_a_difference_that_exists() {
        for case in catalogue() {
            for id in case.needs.cites() {
                assert!(differences().iter().any(|difference| difference.id == id), "{}: {id:?}", case.name);
            }
        }
    }
}

// Delete the next line to hold the suite to being complete.
#[cfg(test)]
mod complete {
    use super::*;
    use crate::testing::catalogue::catalogue;

    #[test]
    fn every_rule_that_is_kept_has_a_case_or_says_why_not() {
        let shown: Vec<Topic> = catalogue().iter().flat_map(|case| Topic::of(case.name)).collect();
        let missing = |rule: &&'static Rule| {
            rule.treatment.is_kept() && rule.unshown.is_none() && !shown.contains(&Topic::Rule(rule))
        };
        let missing: Vec<&str> = rules().filter(missing).map(|rule| rule.number).collect();
        assert!(missing.is_empty(), "no case shows {}", missing.join(", "));
    }

    #[test]
    fn a_rule_with_a_case_has_no_excuse() {
        for case in catalogue() {
            for topic in Topic::of(case.name) {
                if let Topic::Rule(rule) = topic {
                    assert_eq!(rule.unshown, None, "{} is shown by {:?}", rule.number, case.name);
                }
            }
        }
    }

    #[test]
    fn every_difference_is_cited_by_a_case_or_says_why_not() {
        let catalogue = catalogue();
        for difference in differences() {
            let cited = catalogue.iter().any(|case| case.needs.cites().any(|id| id == difference.id));
            let excused = UNSHOWN.iter().any(|(id, _)| *id == difference.id);
            assert!(cited != excused, "{:?}: cited {cited}, excused {excused}", difference.id);
        }
        for (id, _) in UNSHOWN {
            assert!(differences().iter().any(|difference| difference.id == *id), "{id:?}");
        }
    }

    #[test]
    fn hosts_differ_where_they_are_meant_to() {
        for rule in rules().filter(|rule| rule.treatment == Treatment::Differ && rule.unshown.is_none()) {
            assert!(rule.differences().next().is_some(), "{}: no difference names it", rule.number);
        }
    }

    #[test]
    fn there_are_at_least_150_cases() {
        let count = catalogue().len();
        assert!(count >= 150, "{count} cases");
    }
}
