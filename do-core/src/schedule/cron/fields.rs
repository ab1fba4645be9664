//! What a cron expression may look like, read before croner reads it.
//!
//! croner replaces names wherever they stand and passes over empty items: `0 9 MON * *` would be the first of each month,
//! `JAN1` November. A job that comes on the wrong day is noticed late, so these are refused.

const NICKNAMES: [(&str, &str); 6] = [
    ("@YEARLY", "0 0 0 1 1 *"),
    ("@ANNUALLY", "0 0 0 1 1 *"),
    ("@MONTHLY", "0 0 0 1 * *"),
    ("@WEEKLY", "0 0 0 * * 0"),
    ("@DAILY", "0 0 0 * * *"),
    ("@HOURLY", "0 0 * * * *"),
];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

const FIELDS: [Field; 6] =
    [Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];

/// Checks the fields' form, and gives all six of them in upper case; their numbers are croner's to check.
///
/// # Errors
/// What is wrong, to be shown after the expression.
pub(super) fn read(expression: &str) -> Result<String, String> {
    let expression = expression.to_ascii_uppercase();
    let mut texts: Vec<&str> = expression.split_whitespace().collect();
    if let [nickname] = texts[..]
        && nickname.starts_with('@')
    {
        let meant = NICKNAMES.into_iter().find(|(known, _)| *known == nickname);
        return meant
            .map(|(_, fields)| fields.to_owned())
            .ok_or_else(|| format!("{nickname:?} is no nickname"));
    }
    match texts.len() {
        5 => texts.insert(0, "0"),
        6 => {}
        n => return Err(format!("it has {n} fields instead of 5, or 6 with seconds")),
    }
    FIELDS.into_iter().zip(&texts).try_for_each(|(field, text)| field.check(text))?;
    Ok(texts.join(" "))
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        }
    }

    /// How many values it has: the longest step that means anything.
    const fn values(self) -> u32 {
        match self {
            Self::Second | Self::Minute => 60,
            Self::Hour => 24,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            Self::DayOfWeek => 7,
        }
    }

    fn check(self, text: &str) -> Result<(), String> {
        let text = if self == Self::DayOfWeek { text.strip_prefix('+').unwrap_or(text) } else { text };
        for item in text.split(',') {
            let (item, nth) = item.split_once('#').map_or((item, None), |(item, nth)| (item, Some(nth)));
            let (range, step) =
                item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
            let known = range.split('-').all(|value| self.knows(value))
                && nth.is_none_or(|nth| self == Self::DayOfWeek && (is_number(nth) || nth == "L"));
            if !known {
                return Err(format!("{text:?} is no {}", self.name()));
            }
            // "*/90" minutes would be every hour.
            if let Some(step) = step
                && step.parse::<u32>().is_ok_and(|step| step > self.values())
            {
                return Err(format!("a step of {step} is longer than the field {}", self.name()));
            }
        }
        Ok(())
    }

    fn knows(self, value: &str) -> bool {
        if is_number(value) || value == "*" {
            return true;
        }
        match self {
            Self::Second | Self::Minute | Self::Hour => false,
            Self::DayOfMonth => {
                matches!(value, "?" | "L" | "LW") || value.strip_suffix('W').is_some_and(is_number)
            }
            Self::Month => MONTHS.contains(&value),
            Self::DayOfWeek => {
                let day = value.strip_suffix('L').unwrap_or(value);
                value == "?" || is_number(day) || DAYS.contains(&day)
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
