use super::*;
use crate::Timestamp;

fn at(ms: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(ms))
}

#[test]
fn e1_there_is_one_slot_and_the_last_one_wins() {
    let f = Fixture::new();
    for time in [at(5), at(9), at(2), None, at(7)] {
        f.database.set_alarm(time).unwrap();
        assert_eq!(f.database.alarm().unwrap(), time);
    }
    f.database.commit().unwrap();
    assert_eq!(f.reopened().alarm().unwrap(), at(7), "an unopened file is read");
}

#[test]
fn e13_the_slot_is_part_of_the_transaction() {
    let f = Fixture::prepared("CREATE TABLE t (a)");
    f.database.savepoint().unwrap();
    f.database.set_alarm(at(1)).unwrap();
    assert!(f.database.is_dirty());
    f.database.rollback_to().unwrap();
    assert_eq!(f.database.alarm().unwrap(), None);
    f.database.set_alarm(at(2)).unwrap();
    f.database.savepoint().unwrap();
    f.database.set_alarm(None).unwrap();
    f.database.rollback_to().unwrap();
    assert_eq!(f.database.alarm().unwrap(), at(2));
    f.database.rollback();
    assert_eq!(f.database.alarm().unwrap(), None);
    assert_eq!(f.reopened().alarm().unwrap(), None);
}

#[test]
fn setting_what_is_set_writes_nothing() {
    let f = Fixture::new();
    f.database.set_alarm(at(3)).unwrap();
    f.database.commit().unwrap();
    f.database.set_alarm(at(3)).unwrap();
    assert!(!f.database.is_dirty());
}
