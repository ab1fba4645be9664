//! Random expressions against an oracle that tries every minute, and knows neither croner nor how we search.

use super::tests::zone;
use crate::{Timestamp, schedule::cadence::Cadence};
use jiff::{
    ToSpan,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};
use proptest::prelude::*;

/// A field of a random expression, which knows what it means without croner.
#[derive(Debug, Clone)]
enum Field {
    Any,
    Step(i8),
    List(Vec<i8>),
}

impl Field {
    fn text(&self) -> String {
        match self {
            Self::Any => "*".to_owned(),
            Self::Step(n) => format!("*/{n}"),
            Self::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        }
    }

    fn has(&self, value: i8, first: i8) -> bool {
        match self {
            Self::Any => true,
            Self::Step(n) => (value - first) % n == 0,
            Self::List(list) => list.contains(&value),
        }
    }

    const fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }
}

fn field(min: i8, max: i8) -> impl Strategy<Value = Field> {
    prop_oneof![
        Just(Field::Any),
        (1..=(max - min)).prop_map(Field::Step),
        proptest::collection::vec(min..=max, 1..4).prop_map(Field::List),
    ]
}

#[derive(Debug, Clone)]
struct Spec {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl Spec {
    fn text(&self) -> String {
        let Self { minute, hour, day, month, weekday } = self;
        [minute, hour, day, month, weekday].map(Field::text).join(" ")
    }

    fn matches(&self, t: DateTime) -> bool {
        let day = self.day.has(t.day(), 1);
        let weekday = self.weekday.has(t.weekday().to_sunday_zero_offset(), 0);
        let either = !matches!(self.day, Field::Any) && !matches!(self.weekday, Field::Any);
        self.minute.has(t.minute(), 0)
            && self.hour.has(t.hour(), 0)
            && self.month.has(t.month(), 1)
            && if either { day || weekday } else { day && weekday }
    }

    /// All occurrences whose local time is in these minutes, in order.
    fn brute_force(&self, zone: &TimeZone, from: DateTime, minutes: i64) -> Vec<i64> {
        let fixed = self.minute.is_list() && self.hour.is_list();
        let matching = (0..minutes).map(|n| from + n.minutes()).filter(|t| self.matches(*t));
        let moments = |t: DateTime| {
            let found = zone.to_ambiguous_timestamp(t);
            match found.offset() {
                AmbiguousOffset::Unambiguous { .. } => vec![found.unambiguous().unwrap()],
                AmbiguousOffset::Fold { .. } if fixed => vec![found.earlier().unwrap()],
                AmbiguousOffset::Fold { .. } => vec![found.earlier().unwrap(), found.later().unwrap()],
                AmbiguousOffset::Gap { .. } if fixed => {
                    let later = (1..).map(|n| zone.to_ambiguous_timestamp(t + n.minutes()));
                    vec![
                        later.filter(|t| !t.is_ambiguous()).map(|t| t.unambiguous().unwrap()).next().unwrap(),
                    ]
                }
                AmbiguousOffset::Gap { .. } => Vec::new(),
            }
        };
        let mut all: Vec<i64> = matching.flat_map(moments).map(jiff::Timestamp::as_millisecond).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

prop_compose! {
    fn spec()(
        minute in field(0, 59), hour in prop_oneof![field(0, 23), field(0, 3)],
        day in field(1, 31), month in prop_oneof![3 => Just(Field::Any), 1 => field(1, 12)], weekday in field(0, 6),
    ) -> Spec {
        Spec { minute, hour, day, month, weekday }
    }
}

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Zurich",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "America/Nuuk",
    "Africa/Casablanca",
    "America/Santiago",
    "Asia/Beirut",
    "Antarctica/Troll",
    "Pacific/Kiritimati",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn it_comes_when_the_clock_shows_it(
        spec in spec(), name in proptest::sample::select(&ZONES[..]), second in 0..6_900_000_000_i64,
        near in -172_800_000..86_400_000_i64, change in any::<bool>(),
    ) {
        let (cadence, zone) = match Cadence::cron(&spec.text(), name) {
            Ok(cadence) => (cadence, zone(name)),
            Err(error) => {
                prop_assert!(error.to_string().ends_with("there is no such day in any year"), "{error}");
                return Ok(());
            }
        };
        // Mostly near a change of the clock, if there is one.
        let random = jiff::Timestamp::from_second(second + 86_400 * 365).unwrap();
        let around = zone.following(random).next().filter(|_| change).map_or(random, |t| t.timestamp());
        let t = around.as_millisecond() + near;
        // From two days before, so that what a gap of a whole day skipped is among them.
        let from = zone.to_datetime(jiff::Timestamp::from_millisecond(t).unwrap()).date().to_datetime(jiff::civil::Time::midnight());
        let all = spec.brute_force(&zone, from - 2.days(), 6 * 24 * 60);
        let end = t + 2 * 86_400_000;
        let expected: Vec<_> = all.into_iter().filter(|at| (t + 1..=end).contains(at)).map(Timestamp::from_millis).collect();
        let (t, end) = (Timestamp::from_millis(t), Timestamp::from_millis(end));

        let next = cadence.next_after(t).unwrap();
        prop_assert_eq!(next.filter(|next| *next <= end), expected.first().copied());
        if let Some([a, b]) = expected.get(..2) {
            prop_assert_eq!(cadence.next_after(*a).unwrap(), Some(*b));
        }
        let latest = cadence.latest(t, end, 5_000).unwrap();
        // The first that differs, and not the whole of two long lists.
        let differs = latest.iter().zip(&expected).find(|(a, b)| a != b);
        prop_assert_eq!((differs, latest.len()), (None, expected.len()));
        prop_assert_eq!(cadence.latest(t, end, 2).unwrap(), &expected[expected.len().saturating_sub(2)..]);
        prop_assert_eq!(cadence.count(t, end, 7).unwrap(), expected.len().min(7) as u64);
        for n in [1, 2, 1_000_000] {
            let oldest = cadence.latest(t, end, n).unwrap().first().copied();
            prop_assert_eq!(cadence.oldest_of_latest(t, end, n as u64).unwrap(), oldest);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ -~]{0,40}", fields in proptest::collection::vec("[0-9*/,LW#?+A-Z-]{1,6}", 5..7), t in any::<i64>()) {
        for expression in [text, fields.join(" ")] {
            if let Ok(cadence) = Cadence::cron(&expression, "Europe/Zurich") {
                cadence.next_after(Timestamp::from_millis(t)).unwrap();
            }
        }
    }
}
