//! What a server is told to publish: a timer in each server is the same for all of them, while requests would have to
//! find their way through whatever each server has in front of its feed.

use crate::fanout::Outcome;
use std::time::{Duration, SystemTime};

/// Digits of a message's time in nanoseconds, and of its number.
pub const DIGITS: usize = 20;

/// Messages to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Number of the first.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// How many in a second; 0 for all at once.
    pub rate: u32,
    /// Bytes of each, at least twice [`DIGITS`].
    pub payload: usize,
}

impl Order {
    /// As it is posted.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {} {} {}", self.from, self.count, self.rate, self.payload)
    }

    /// What was posted.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Outcome<Self> {
        let numbers = text.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let [from, count, rate, payload] = numbers.as_slice() else { return Err("no order".into()) };
        Ok(Self {
            from: *from,
            count: *count,
            rate: u32::try_from(*rate)?,
            payload: usize::try_from(*payload)?,
        })
    }

    /// Publishes everything in time, or as soon as possible when it is late.
    pub async fn run<S: Future<Output = ()>>(
        &self,
        sleep: impl Fn(Duration) -> S,
        mut publish: impl FnMut(String),
    ) {
        let begun = now();
        for place in 0..self.count {
            let due = begun + place.saturating_mul(1_000_000_000) / u64::from(self.rate.max(1));
            let wait = due.saturating_sub(now());
            if self.rate > 0 && wait > 0 {
                sleep(Duration::from_nanos(wait)).await;
            }
            publish(self.message(self.from + place));
        }
    }

    /// Begins with the time and its number.
    fn message(&self, place: u64) -> String {
        let mut message = format!("{:0DIGITS$}{place:0DIGITS$}", now());
        message.extend(std::iter::repeat_n('.', self.payload.saturating_sub(2 * DIGITS)));
        message
    }
}

/// Nanoseconds, the same in all processes.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_what_was_posted_and_its_messages_are_numbered() {
        let order = Order { from: 3, count: 2, rate: 0, payload: 60 };
        assert_eq!(Order::parse(&order.text()).unwrap(), order);
        assert!(Order::parse("1 2").is_err());
        let mut messages = Vec::new();
        futures::executor::block_on(order.run(|_| std::future::ready(()), |message| messages.push(message)));
        let places: Vec<&str> = messages.iter().map(|message| &message[DIGITS..2 * DIGITS]).collect();
        assert_eq!(places, ["00000000000000000003", "00000000000000000004"]);
        assert!(messages.iter().all(|message| message.len() == 60));
    }
}
