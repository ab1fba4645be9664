//! Rules of semaphores.

use crate::lab::{MINUTE, builder, expired, within};
use do_core::ErrorKind;
use do_sync::{Permits, Release, RequestKey};

#[test]
fn permits_are_granted_whole_or_not_at_all() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let semaphore = &lab.semaphore;
        semaphore.set_capacity("s", 5).unwrap();
        let ann = semaphore.acquire("s", "ann", 3, MINUTE).unwrap().granted().unwrap();
        let refused = semaphore.acquire("s", "bob", 3, MINUTE).unwrap();
        assert_eq!(refused, Permits::Exhausted { free: 2, until: Some(ann.until) });
        assert_eq!(semaphore.usage("s").unwrap().unwrap().free, 2);
        let bob = semaphore.acquire("s", "bob", 2, MINUTE).unwrap().granted().unwrap();
        assert!(bob.token > ann.token);
        assert_eq!(semaphore.release("s", ann.token).unwrap(), Release::Released);
        assert_eq!(semaphore.release("s", ann.token).unwrap(), Release::NotHeld);
        assert!(!semaphore.check("s", ann.token).unwrap() && semaphore.check("s", bob.token).unwrap());
        assert_eq!(semaphore.usage("s").unwrap().unwrap().free, 3);
        assert_eq!(semaphore.acquire("s", "cid", 6, MINUTE).unwrap().granted(), None);
    }));
}

#[test]
fn each_grant_expires_by_itself() {
    let kit = builder().start().unwrap();
    kit.run(async {
        within(&kit, |lab| {
            lab.semaphore.set_capacity("s", 2).unwrap();
            lab.semaphore.acquire("s", "ann", 1, MINUTE).unwrap().granted().unwrap();
            lab.semaphore.acquire("s", "bob", 1, 3 * MINUTE).unwrap().granted().unwrap();
        })
        .await;
        kit.advance(MINUTE).await;
        let bob = within(&kit, |lab| lab.semaphore.usage("s").unwrap().unwrap()).await;
        assert_eq!((bob.free, bob.holders[0].holder.as_str()), (1, "bob"));
        let token = bob.holders[0].token;
        let renewed = within(&kit, move |lab| lab.semaphore.renew("s", token, 5 * MINUTE).unwrap()).await;
        assert_eq!(renewed.unwrap().until, kit.now() + 5 * MINUTE);
        kit.advance(4 * MINUTE).await;
        assert_eq!(expired().len(), 1);
        kit.advance(MINUTE).await;
        assert_eq!(expired().len(), 1);
        assert_eq!(within(&kit, |lab| lab.semaphore.usage("s").unwrap().unwrap().free).await, 2);
    });
}

#[test]
fn a_smaller_capacity_takes_from_nobody_and_grants_nothing_until_enough_came_back() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let semaphore = &lab.semaphore;
        semaphore.set_capacity("s", 4).unwrap();
        let grants =
            [1, 1, 2].map(|weight| semaphore.acquire("s", "a", weight, MINUTE).unwrap().granted().unwrap());
        semaphore.set_capacity("s", 2).unwrap();
        for grant in grants {
            assert!(semaphore.check("s", grant.token).unwrap());
        }
        let free = || semaphore.usage("s").unwrap().unwrap().free;
        assert_eq!(free(), 0);
        semaphore.release("s", grants[2].token).unwrap();
        assert_eq!(free(), 0);
        semaphore.release("s", grants[1].token).unwrap();
        assert_eq!(free(), 1);
        semaphore.set_capacity("s", 0).unwrap();
        assert_eq!(semaphore.acquire("s", "a", 1, MINUTE).unwrap().granted(), None);
        semaphore.set_capacity("s", u32::MAX).unwrap();
        assert_eq!(free(), u32::MAX - 1);
    }));
}

#[test]
fn without_a_capacity_there_is_no_semaphore_and_a_repeated_key_says_so_again() {
    let kit = builder().start().unwrap();
    kit.run(within(&kit, |lab| {
        let semaphore = &lab.semaphore;
        let keyed = semaphore.keyed(RequestKey::new("k").unwrap());
        assert_eq!(keyed.acquire("s", "ann", 1, MINUTE).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(semaphore.usage("s").unwrap(), None);
        semaphore.set_capacity("s", 1).unwrap();
        assert_eq!(keyed.acquire("s", "ann", 1, MINUTE).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(semaphore.usage("s").unwrap().unwrap().free, 1);
        assert_eq!(semaphore.acquire("s", "ann", 0, MINUTE).unwrap_err().kind(), ErrorKind::Invalid);
    }));
}

#[test]
fn a_repeated_key_takes_permits_once() {
    let kit = builder().start().unwrap();
    kit.run(async {
        let ask = || {
            within(&kit, |lab| {
                lab.semaphore.keyed(RequestKey::new("c").unwrap()).set_capacity("s", 2).unwrap();
                lab.semaphore.keyed(RequestKey::new("k").unwrap()).acquire("s", "ann", 1, MINUTE).unwrap()
            })
        };
        let first = ask().await;
        kit.crash();
        assert_eq!(ask().await, first);
        assert_eq!(within(&kit, |lab| lab.semaphore.usage("s").unwrap().unwrap().free).await, 1);
    });
}
