//! Rules of the counter.

use crate::lab::{builder, within};
use do_core::{ErrorKind, prelude::*};
use do_sync::{CompareAndSet, Once, RequestKey};

const MAX: i64 = (1 << 53) - 1;

#[test]
fn counters_are_apart_by_name_and_survive_a_crash() {
    let kit = builder().start().unwrap();
    kit.run(async {
        within(&kit, |lab| {
            assert_eq!(lab.counter.get("a").unwrap(), 0);
            assert_eq!(lab.counter.add("a", 5).unwrap(), 5);
            assert_eq!(lab.counter.add("a", -7).unwrap(), -2);
            assert_eq!(lab.counter.set("b", 40).unwrap(), 40);
        })
        .await;
        kit.crash();
        within(&kit, |lab| {
            let all = [("a".to_owned(), -2), ("b".to_owned(), 40)];
            assert_eq!(lab.counter.list("", 10).unwrap(), all);
            assert_eq!(lab.counter.list("a", 10).unwrap(), all[1..]);
            assert_eq!(lab.counter.list("", 1).unwrap(), all[..1]);
            assert_eq!(lab.counter.reset("b").unwrap(), Some(40));
            assert_eq!(lab.counter.reset("b").unwrap(), None);
            assert_eq!(lab.counter.get("b").unwrap(), 0);
        })
        .await;
    });
}

#[test]
fn an_overflow_is_an_error_and_changes_nothing() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let counter = &lab.counter;
        assert_eq!(counter.set("n", MAX - 1).unwrap(), MAX - 1);
        assert_eq!(counter.add("n", 1).unwrap(), MAX);
        let error = counter.add("n", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(
            error.to_string().starts_with("adding 1 to the counter \"n\", which is 9007199254740991,"),
            "{error}"
        );
        assert_eq!(counter.add("n", MAX).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(counter.get("n").unwrap(), MAX);
        assert_eq!(counter.add("n", -MAX).unwrap(), 0);
        assert_eq!(counter.add("n", -MAX).unwrap(), -MAX);
        assert_eq!(counter.add("n", -1).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(counter.get("n").unwrap(), -MAX);
    }));
}

#[test]
fn f3_numbers_beyond_the_exact_range_are_refused() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let counter = &lab.counter;
        for beyond in [MAX + 1, -MAX - 1, i64::MAX, i64::MIN] {
            assert_eq!(counter.add("n", beyond).unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(counter.set("n", beyond).unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(counter.compare_and_set("n", 0, beyond).unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(counter.compare_and_set("n", beyond, 0).unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(counter.list("", 10).unwrap(), []);
    }));
}

#[test]
fn bounds_are_kept_and_the_beginning_is_the_bound_nearest_to_zero() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let stock = lab.counter.clone().bounds(0..=3);
        assert_eq!(stock.add("stock", 2).unwrap(), 2);
        assert_eq!(stock.add("stock", 2).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(stock.add("stock", -3).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(stock.set("stock", 4).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(stock.compare_and_set("stock", 2, 4).unwrap_err().kind(), ErrorKind::Limit);
        // More than a fresh counter could take.
        assert_eq!(stock.add("stock", 1).unwrap(), 3);
        assert_eq!(stock.add("other", -1).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(stock.add("other", 4).unwrap_err().kind(), ErrorKind::Limit);
        let late = lab.counter.clone().bounds(10..=20);
        assert_eq!(late.get("late").unwrap(), 10);
        assert_eq!(late.add("late", 1).unwrap(), 11);
        assert_eq!(late.add("late", -1).unwrap(), 10);
        assert_eq!(lab.counter.list("", 10).unwrap(), [("late".to_owned(), 10), ("stock".to_owned(), 3)]);
    }));
}

#[test]
fn compare_and_set_changes_only_what_is_as_expected() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let counter = &lab.counter;
        assert_eq!(counter.compare_and_set("n", 1, 2).unwrap(), CompareAndSet::Differs(0));
        assert_eq!(counter.compare_and_set("n", 0, 2).unwrap(), CompareAndSet::Done);
        assert_eq!(counter.compare_and_set("n", 0, 3).unwrap(), CompareAndSet::Differs(2));
        assert_eq!(counter.compare_and_set("n", 2, 0).unwrap(), CompareAndSet::Done);
        assert_eq!(counter.compare_and_set("n", 0, 7).unwrap(), CompareAndSet::Done);
        assert_eq!(counter.get("n").unwrap(), 7);
    }));
}

#[test]
fn a_repeated_key_gives_the_first_answer_also_when_that_was_a_refusal() {
    let kit = builder().start().unwrap();
    kit.run(async {
        within(&kit, |lab| {
            let key = |text| RequestKey::new(text).unwrap();
            let stock = lab.counter.clone().bounds(0..=3);
            assert_eq!(stock.keyed(key("a")).add("n", 2).unwrap(), 2);
            assert_eq!(stock.keyed(key("a")).add("n", 2).unwrap(), 2);
            let refused = stock.keyed(key("b")).add("n", 2).unwrap_err();
            assert_eq!(stock.set("n", 0).unwrap(), 0);
            let again = stock.keyed(key("b")).add("n", 2).unwrap_err();
            assert_eq!((again.kind(), again.to_string()), (ErrorKind::Limit, refused.to_string()));
            assert_eq!(stock.keyed(key("c")).compare_and_set("n", 0, 1).unwrap(), CompareAndSet::Done);
            assert_eq!(stock.keyed(key("c")).compare_and_set("n", 0, 1).unwrap(), CompareAndSet::Done);
            assert_eq!(stock.keyed(key("d")).reset("n").unwrap(), Some(1));
            assert_eq!(stock.keyed(key("d")).reset("n").unwrap(), Some(1));
        })
        .await;
        kit.crash();
        within(&kit, |lab| {
            let keyed = lab.counter.keyed(RequestKey::new("a").unwrap());
            assert_eq!(keyed.add("n", 2).unwrap(), 2);
            assert_eq!(keyed.get("n").unwrap(), 0);
            for error in [keyed.add("n", 3), keyed.add("m", 2), keyed.set("n", 2)] {
                assert!(Once::<do_core::State>::is_reused_key(&error.unwrap_err()));
            }
            assert_eq!(keyed.list("", 9).unwrap(), []);
        })
        .await;
    });
}

#[test]
fn names_are_checked() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        for (name, kind) in
            [("", ErrorKind::Invalid), ("a\nb", ErrorKind::Invalid), (&"x".repeat(257), ErrorKind::Limit)]
        {
            assert_eq!(lab.counter.add(name, 1).unwrap_err().kind(), kind);
            assert_eq!(lab.counter.get(name).unwrap_err().kind(), kind);
        }
        assert_eq!(lab.counter.add(&"x".repeat(256), 1).unwrap(), 1);
    }));
}

#[test]
fn a_change_takes_part_in_the_transaction_around_it() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let undone = lab.state.sql().transaction(|| {
            lab.counter.add("n", 1)?;
            lab.counter.keyed(RequestKey::new("k").unwrap()).add("n", 1)?;
            Err::<(), _>(Failure::msg("no"))
        });
        assert!(undone.is_err());
        assert_eq!(lab.counter.get("n").unwrap(), 0);
        assert_eq!(lab.counter.keyed(RequestKey::new("k").unwrap()).add("n", 1).unwrap(), 1);
    }));
}

#[test]
fn e14_after_delete_all_counters_begin_anew() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let keyed = lab.counter.keyed(RequestKey::new("k").unwrap());
        assert_eq!(keyed.add("n", 1).unwrap(), 1);
        assert_eq!(lab.counter.add("n", 1).unwrap(), 2);
        lab.state.delete_all().unwrap();
        assert_eq!(lab.counter.get("n").unwrap(), 0);
        assert_eq!(keyed.add("n", 1).unwrap(), 1);
    }));
}
