//! What is put: names, keys, payloads and times that nobody should use.

use super::*;

#[test]
fn times_at_the_bounds_are_taken_and_those_beyond_change_nothing() {
    let world = World::new(noted);
    world.kit.run(async {
        let kinds = world
            .call(|own| async move {
                let mut kinds = Vec::new();
                for ms in [i64::MIN, -1, 0, 6_942_758_400_000, i64::MAX] {
                    let at = Timestamp::from_millis(ms);
                    kinds.push(own.schedule.put("a", Plan::at(at).key("k")).await.unwrap_err().kind());
                    kinds.push(own.schedule.slot("s").set(at).await.unwrap_err().kind());
                }
                assert_eq!(own.schedule.pending("", 9)?, []);
                own.schedule
                    .put("last", Plan::at(Timestamp::from_millis(6_942_758_399_999)).key("k"))
                    .await?;
                own.schedule.slot("first").set(Timestamp::from_millis(1)).await?;
                Ok(kinds)
            })
            .await;
        assert_eq!(kinds, [ErrorKind::Invalid; 10]);
        world.is_sound().await;
        world.advance(5).await;
        assert_eq!(log(), ["first"]);
        world.is_sound().await;
    });
}

#[test]
fn intervals_and_anchors_at_the_bounds_come_at_their_ticks_or_are_refused() {
    let world = World::new(noted);
    world.kit.run(async {
        let hour = || Plan::every(Duration::from_secs(3_600)).unwrap();
        let due = world
            .call(move |own| async move {
                for interval in [Duration::ZERO, Duration::from_nanos(999_999), Duration::MAX] {
                    assert_eq!(Plan::every(interval).unwrap_err().kind(), ErrorKind::Invalid);
                }
                let never = [
                    Plan::every(Duration::from_millis(i64::MAX.unsigned_abs()))?,
                    hour().anchored(Timestamp::MAX),
                    hour().anchored(Timestamp::from_millis(6_942_758_400_000)),
                ];
                for plan in never {
                    let error = own.schedule.put("a", plan).await.unwrap_err();
                    assert_eq!(error.to_string(), "a plan whose first tick never comes");
                }
                own.schedule.put("far", hour().anchored(Timestamp::from_millis(6_942_758_399_999))).await?;
                own.schedule.put("old", hour().anchored(Timestamp::from_millis(i64::MIN))).await?;
                let due = |name| own.schedule.get(name).map(|row| row.unwrap().due.as_millis());
                Ok([due("far")?, due("old")?])
            })
            .await;
        let rest = (i128::from(BEGIN.as_millis()) - i128::from(i64::MIN)) % 3_600_000;
        let old = BEGIN.as_millis() + 3_600_000 - i64::try_from(rest).unwrap();
        assert_eq!(due[0], 6_942_758_399_999);
        assert!((due[1] - old).abs() <= 10, "{} is not {old}", due[1]);
        world.is_sound().await;
    });
}

#[test]
fn names_in_any_language_are_names_and_page_in_their_order() {
    let world = World::new(fails);
    world.kit.run(async {
        let names =
            ["ß", "a b", "🦀🦀", "\u{202e}rtl", "e\u{301}", "é", "%_", "'; DROP TABLE _schedule; --", "_"];
        let long = "ü".repeat(128);
        let told = long.clone();
        world
            .call(move |own| {
                let long = told.clone();
                async move {
                    for name in names.iter().copied().chain([long.as_str()]) {
                        own.schedule.put(name, Plan::at(own.after(10)).retry(once())).await?;
                    }
                    for bad in ["", "\0", "a\nb", "\u{85}", "\u{1}replay 1"] {
                        let error = own.schedule.put(bad, Plan::at(own.after(10))).await.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{bad:?}");
                        assert_eq!(own.schedule.get(bad)?, None);
                        assert!(!own.schedule.cancel(bad).await?);
                    }
                    let error = own.schedule.put(&(long + "x"), Plan::at(own.after(10))).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Limit);
                    Ok(())
                }
            })
            .await;
        world.advance(100).await;
        let mut run = log();
        run.sort();
        let mut expected: Vec<_> = names.iter().map(|name| (*name).to_owned()).chain([long]).collect();
        expected.sort();
        assert_eq!(run, expected);
        // All of them are dead letters: replayed, their ids are none of the names, and paging by id meets each once.
        let paged = world
            .call(|own| async move {
                let letters = own.schedule.dead_letters(0, 100)?;
                for letter in &letters {
                    assert!(own.schedule.replay(letter.id).await?);
                    assert!(!own.schedule.replay(letter.id).await?);
                    own.schedule.put(&letter.name, Plan::at(own.after(60_000))).await?;
                }
                let (mut after, mut ids) = (String::new(), Vec::new());
                while let Some(page) = Some(own.schedule.pending(&after, 3)?).filter(|page| !page.is_empty())
                {
                    after.clone_from(&page.last().unwrap().id);
                    ids.extend(page.into_iter().map(|row| row.id));
                }
                assert_eq!(own.schedule.pending(&after, 3)?, []);
                assert_eq!(own.schedule.pending("", 0)?, []);
                Ok(ids)
            })
            .await;
        assert_eq!(paged.len(), 20);
        assert!(paged.is_sorted() && paged.windows(2).all(|pair| pair[0] != pair[1]));
    });
}

#[test]
fn the_longest_payload_is_kept_through_death_and_replay_and_a_longer_one_refused() {
    let world = World::new(async |_: Own, job: Job| {
        note(job.payload::<String>()?.len().to_string());
        job.give_up("\0 not today \u{1F980}".repeat(1_000))
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let text = "x".repeat(PAYLOAD_BYTES - 2);
                let plan = Plan::at(own.after(10)).payload(&text)?;
                assert_eq!(Plan::at(BEGIN).payload(&(text + "x")).unwrap_err().kind(), ErrorKind::Limit);
                own.schedule.put("a", plan).await?;
                Ok(())
            })
            .await;
        world.advance(100).await;
        world
            .call(|own| async move {
                let letter = own.schedule.dead_letters(0, 1)?.remove(0);
                assert_eq!(letter.payload::<String>()?.len(), PAYLOAD_BYTES - 2);
                assert!(letter.error.len() <= 1_024 && letter.error.starts_with("\0 not today"));
                own.schedule.replay(letter.id).await?;
                Ok(())
            })
            .await;
        world.advance(100).await;
        assert_eq!(log(), ["999998", "999998"]);
        world.is_sound().await;
    });
}

#[test]
fn a_key_is_one_for_all_names_and_one_that_was_refused_is_not_remembered() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                let plan = || Plan::at(own.after(10)).key("k");
                own.schedule.put("", plan()).await.unwrap_err();
                own.schedule.put("x", Plan::every(YEAR * 300)?.key("k")).await.unwrap_err();
                let undone: Result<()> = own.state.sql().transaction(|| {
                    drop(own.schedule.put("undone", plan()));
                    Err(Failure::msg("undone"))
                });
                undone.unwrap_err();
                own.schedule.put("a", plan()).await?;
                own.schedule.put("b", plan()).await?;
                own.schedule.put("a", Plan::at(own.after(90_000)).key("k")).await?;
                own.schedule.put("c", Plan::at(own.after(10)).key(" k")).await?;
                Ok(())
            })
            .await;
        world.advance(100).await;
        assert_eq!(log(), ["a", "c"]);
    });
}

#[test]
fn what_is_put_for_now_during_back_off_comes_now_and_what_is_put_for_before_keeps_the_retry() {
    let world = World::new(fails);
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = || Retry::new(9, Duration::from_secs(100));
                own.schedule.put("again", Plan::at(own.after(10)).retry(retry()?)).await?;
                own.schedule.put("overdue", Plan::at(Timestamp::from_millis(5)).retry(retry()?)).await?;
                let every = Plan::every(Duration::from_secs(1_000))?.anchored(own.after(10));
                own.schedule.put("becomes one", every.retry(retry()?)).await?;
                own.schedule.slot("slot").set(own.after(10)).await?;
                Ok(())
            })
            .await;
        world.advance(1_000).await;
        assert_eq!(log(), ["overdue", "again", "becomes one", "slot"]);
        let attempts = world
            .call(|own| async move {
                let retry = || Retry::new(9, Duration::from_secs(100));
                let now = own.state.now();
                own.schedule.put("again", Plan::at(now).retry(retry()?)).await?;
                own.schedule.put("overdue", Plan::at(Timestamp::from_millis(5)).retry(retry()?)).await?;
                own.schedule.put("becomes one", Plan::at(Timestamp::from_millis(5)).retry(retry()?)).await?;
                own.schedule.slot("slot").set(now).await?;
                let rows = own.schedule.pending("", 9)?;
                Ok(rows.into_iter().map(|row| (row.name, row.attempts)).collect::<Vec<_>>())
            })
            .await;
        let expected = [("again", 0), ("becomes one", 0), ("overdue", 1), ("slot", 0)];
        assert_eq!(attempts, expected.map(|(name, attempts)| (name.to_owned(), attempts)));
        world.advance(100).await;
        assert_eq!(log(), ["again", "becomes one", "slot"]);
        world.is_sound().await;
    });
}

#[test]
fn a_recurring_job_that_fails_at_each_tick_is_a_dead_letter_after_its_runs_and_goes_on() {
    let world = World::new(async |_: Own, job: Job| {
        note(format!("{} {} {}", job.scheduled(), job.attempt(), job.missed()));
        Err(Failure::msg("as it should"))
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let plan = Plan::every(Duration::from_secs(1))?.anchored(Timestamp::from_millis(0));
                own.schedule.put("a", plan.retry(Retry::new(2, Duration::from_secs(60))?)).await?;
                Ok(())
            })
            .await;
        world.advance(4_500).await;
        let at = |second: i64| BEGIN.as_millis() + second * 1_000;
        let runs = [(1, 1, 0), (2, 2, 1), (3, 1, 0), (4, 2, 1)];
        let runs = runs.map(|(second, attempt, missed)| format!("{} {attempt} {missed}", at(second)));
        assert_eq!(log(), runs);
        assert_eq!(world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.len()) }).await, 2);
        world.is_sound().await;
    });
}
