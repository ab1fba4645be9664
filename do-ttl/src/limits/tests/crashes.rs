//! A store with limits that notifies, struck while a put evicts.

use super::*;
use do_core::kit::Strike;

/// The puts, each an event: keys and bytes. They evict nothing, one, two, one, and nothing.
const PUTS: [(&str, usize); 6] = [("a", 10), ("b", 10), ("c", 10), ("large", 40), ("d", 10), ("e", 10)];

/// What is there after so many of them, and what waits to be told.
const AFTER: [(&[&str], &[&str]); 7] = [
    (&[], &[]),
    (&["a"], &[]),
    (&["a", "b"], &[]),
    (&["b", "c"], &["a"]),
    (&["large"], &["a", "b", "c"]),
    (&["d"], &["a", "b", "c", "large"]),
    (&["d", "e"], &["a", "b", "c", "large"]),
];

/// Puts up to the first that fails; how many did not. Does `before` before each.
async fn puts(lab: &Lab, before: impl Fn(&Lab, usize)) -> usize {
    for (n, (key, bytes)) in PUTS.into_iter().enumerate() {
        before(lab, n);
        let work = lab.stub.clone();
        WORK.set(Some(Box::new(move |store| {
            Box::pin(async move { Ok(put(&store, key, bytes, 60_000 + i64::try_from(n)?)?) })
        })));
        if work.fetch(Request::default()).await.is_err() {
            return n;
        }
    }
    PUTS.len()
}

fn notices(store: &Store) -> Result<Vec<String>> {
    let sql = store.sweeper.0.state.sql();
    if sql.scalar::<i64>("SELECT 1 FROM sqlite_master WHERE name = '_ttl_notices'", ())?.is_none() {
        return Ok(Vec::new());
    }
    let rows = sql.exec("SELECT key, evicted FROM _ttl_notices ORDER BY key", ())?;
    let key = |row: do_core::Row<'_>| {
        assert!(row.at::<bool>(1)?, "evicted, not expired");
        row.at(0)
    };
    Ok(rows.iter().map(key).collect::<Result<_, do_core::Error>>()?)
}

/// Runs it with what `before` does before each put.
fn run(before: impl Fn(&Lab, usize)) -> Result<u64> {
    lab(Settings::new().max_entries(2).max_bytes(45).notify(true), async |lab| {
        let done = puts(&lab, before).await;
        let steps = lab.kit.steps();
        WORK.take();
        lab.kit.heal();
        lab.kit.crash();
        lab.at_once(move |store| {
            let (there, told) = (keys(store)?, notices(store)?);
            // All of what was answered; of what was not, all or nothing.
            let found = AFTER.iter().position(|after| there == after.0 && told == after.1);
            let is_right = found.is_some_and(|found| found == done || found == done + 1);
            assert!(is_right, "{done} {there:?} {told:?}");
            let counted = store.sweeper.0.rows.usage(store.name())?.unwrap_or_default();
            assert_eq!(counted, truth(store)?);
            Ok(())
        })
        .await?;
        Ok(steps)
    })
}

#[test]
fn t16_t19_a_put_that_evicts_is_whole_with_its_count_and_its_notice_or_not_at_all() -> Result<()> {
    let steps = run(|_, _| ())?;
    assert!(steps > 12, "{steps}");
    for step in 0..steps {
        for strike in [Strike::Crash, Strike::LosePower] {
            run(|lab, n| {
                if n == 0 {
                    lab.kit.at_step(step, &strike);
                }
            })?;
        }
        run(|lab, n| {
            if n == 0 {
                lab.kit.at_step(step, &Strike::Evict(lab.stub.clone()));
            }
        })?;
    }
    Ok(())
}

#[test]
fn t16_t19_storage_that_fails_in_a_put_that_evicts_leaves_all_of_it_or_nothing() -> Result<()> {
    for nth in 0..PUTS.len() {
        let commits = [Failing::CrashBeforeCommit, Failing::CrashAfterCommit, Failing::Commit];
        for what in commits.into_iter().chain((0..24).map(Failing::SqlAfter)) {
            run(|lab, n| {
                if n == nth {
                    lab.kit.fail_next(&lab.stub, what);
                }
            })?;
        }
    }
    Ok(())
}
