use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    rc::Rc,
};

/// So many sockets that left are remembered. Each leaves the host's lists at the first await of its close handler (rule
/// D18), so that those that matter are the latest.
const LEFT: usize = 4_096;

/// What an instance knows of its connections beyond what the host lists. Lost with it, as the streams are.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By serial number, which is the order in which they came.
    streams: BTreeMap<u64, Stream>,
    of_key: BTreeMap<Rc<str>, usize>,
    last: u64,
    /// The numbers of sockets of which was told that they left, and in which order.
    left: BTreeSet<u64>,
    order: VecDeque<u64>,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: Box<str>,
    pub(super) key: Option<Rc<str>>,
}

impl Memory {
    /// The serial number of a new stream.
    pub(super) fn add(&mut self, id: &str, key: Option<Rc<str>>) -> u64 {
        self.last += 1;
        if let Some(key) = &key {
            *self.of_key.entry(Rc::clone(key)).or_default() += 1;
        }
        self.streams.insert(self.last, Stream { id: id.into(), key });
        self.last
    }

    pub(super) fn take(&mut self, serial: u64) -> Option<Stream> {
        let stream = self.streams.remove(&serial)?;
        if let Some(key) = &stream.key
            && let Some(count) = self.of_key.get_mut(key)
        {
            *count -= 1;
            if *count == 0 {
                self.of_key.remove(key);
            }
        }
        Some(stream)
    }

    pub(super) fn stream(&self, serial: u64) -> Option<&Stream> {
        self.streams.get(&serial)
    }

    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn streams_of(&self, key: &str) -> usize {
        self.of_key.get(key).copied().unwrap_or(0)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Rc<str>> {
        self.of_key.keys()
    }

    /// False when it was told before.
    pub(super) fn tell_left(&mut self, socket: u64) -> bool {
        if !self.left.insert(socket) {
            return false;
        }
        self.order.push_back(socket);
        if self.order.len() > LEFT
            && let Some(oldest) = self.order.pop_front()
        {
            self.left.remove(&oldest);
        }
        true
    }

    pub(super) fn has_left(&self, socket: u64) -> bool {
        self.left.contains(&socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_known_by_a_number_that_is_not_given_again() {
        let mut memory = Memory::default();
        let key = || Some(Rc::from("ann"));
        let first = memory.add("tab", key());
        let second = memory.add("tab", key());
        assert_eq!((memory.streams(), memory.streams_of("ann")), (2, 2));
        assert_eq!(memory.take(first).map(|stream| stream.id), Some("tab".into()));
        assert!(memory.take(first).is_none(), "it left");
        let third = memory.add("tab", None);
        assert!(first < second && second < third);
        assert_eq!((memory.streams(), memory.streams_of("ann")), (2, 1));
        assert!(memory.stream(first).is_none() && memory.stream(third).is_some());
        assert!(memory.take(second).is_some());
        assert_eq!((memory.keys().count(), memory.streams()), (0, 1));
    }

    #[test]
    fn the_latest_sockets_that_left_are_remembered() {
        let mut memory = Memory::default();
        for socket in 0..=LEFT as u64 {
            assert!(memory.tell_left(socket));
            assert!(!memory.tell_left(socket));
        }
        assert_eq!((memory.left.len(), memory.order.len()), (LEFT, LEFT));
        assert!(!memory.has_left(0) && memory.has_left(1) && memory.has_left(LEFT as u64));
    }
}
