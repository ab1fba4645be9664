//! What is kept and how much of it, with thousands pending.

use super::*;

#[test]
fn a_dead_letter_is_kept_while_there_are_not_too_many() {
    let world = World::new(async |_: Own, job: Job| job.give_up("as it should"));
    world.kit.run(async {
        let put = |name: String| {
            world.call(move |own| {
                let name = name.clone();
                async move { Ok(own.schedule.put(&name, Plan::at(own.after(1))).await?) }
            })
        };
        put("old".to_owned()).await;
        world.advance(2).await;
        for n in 0..DEAD_LETTERS_KEPT + 5 {
            put(format!("job {n}")).await;
            world.advance(2).await;
            let left = world
                .call(|own| async move {
                    let letters = own.schedule.dead_letters(0, 9)?;
                    for letter in letters.iter().skip(1) {
                        own.schedule.discard(letter.id)?;
                    }
                    Ok(letters.into_iter().map(|letter| letter.name).collect::<Vec<_>>())
                })
                .await;
            assert_eq!(left, ["old".to_owned(), format!("job {n}")]);
        }
    });
}

#[test]
fn the_latest_thousand_dead_letters_are_kept_whatever_is_missing_between_them() {
    let world =
        World::of(builder(), Settings::default().jobs_per_wake(u32::MAX), async |_: Own, job: Job| {
            job.give_up("as it should")
        });
    world.kit.run(async {
        let total = u64::from(DEAD_LETTERS_KEPT) + 200;
        world
            .call(move |own| async move {
                for n in 0..total {
                    own.schedule.put(&format!("{n:04}"), Plan::at(own.after(1_000 + n))).await?;
                }
                Ok(())
            })
            .await;
        world.advance(1_500).await;
        // Every second of the first 400.
        world
            .call(|own| async move {
                for letter in own.schedule.dead_letters(0, 400)?.iter().step_by(2) {
                    own.schedule.discard(letter.id)?;
                }
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        let (count, first) = world
            .call(|own| async move {
                let letters = own.schedule.dead_letters(0, u32::MAX)?;
                Ok((letters.len(), letters[0].name.clone()))
            })
            .await;
        assert_eq!((count, first.as_str()), (1_000, "0001"));
    });
}

#[test]
fn a_history_without_end_and_one_that_is_made_smaller() {
    let world = World::of(builder(), Settings::default().history(u32::MAX).jobs_per_wake(1), noted);
    world.kit.run(async {
        world
            .call(|own| async move { Ok(own.schedule.put("a", Plan::every(Duration::from_millis(10))?).await?) })
            .await;
        world.advance(2_005).await;
        let runs = log().len();
        assert!(runs >= 195, "{runs}");
        let kept = world.call(|own| async move { Ok(own.schedule.history(u32::MAX)?.len()) }).await;
        assert_eq!(kept, runs);
        behave(|behaviour| behaviour.settings = Settings::default().history(2));
        world.kit.evict(&world.stub);
        world.advance(15).await;
        let kept = world.call(|own| async move { own.schedule.cancel("a").await?; Ok(own.schedule.history(9)?) }).await;
        assert_eq!(kept.len(), 2);
        assert!(kept.iter().all(|run| run.outcome == Outcome::Done));
    });
}

#[test]
fn what_the_history_cannot_take_does_not_keep_jobs_from_ending() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("a", Plan::at(own.after(10))).await?;
                own.schedule.put("b", Plan::at(own.after(20))).await?;
                let full = "CREATE TRIGGER full BEFORE INSERT ON _schedule_runs \
                            BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END";
                own.exec(full)
            })
            .await;
        world.advance(600_000).await;
        assert_eq!(log(), ["a", "b"]);
        world.is_sound().await;
    });
}

#[test]
fn thousands_pending_are_run_each_once_and_in_their_order() {
    let world = World::of(builder(), Settings::default().jobs_per_wake(u32::MAX), noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                for n in 0..3_000_u64 {
                    let at = own.after(100_000 + n * 7 % 3_000);
                    own.schedule.put(&format!("{:05}", n * 7 % 3_000), Plan::at(at)).await?;
                }
                assert_eq!(own.schedule.stats().alarms_set, 1);
                Ok(())
            })
            .await;
        world.advance(200_000).await;
        let run = log();
        assert_eq!(run.len(), 3_000);
        assert!(run.is_sorted());
        world.is_sound().await;
    });
}

/// Those that the schedule asks of its tables, whatever is in them: as they are in `store.rs`, `dead.rs` and `schedule.rs`.
#[test]
fn no_question_reads_a_whole_table() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move { Ok(own.schedule.put("a", Plan::at(own.after(9_000)).key("k")).await?) })
            .await;
        let questions = [
            "SELECT due FROM _schedule ORDER BY due LIMIT 1",
            "SELECT * FROM _schedule WHERE key = ?",
            "SELECT * FROM _schedule WHERE due <= ? ORDER BY due, key LIMIT 1",
            "SELECT * FROM _schedule WHERE key > ? ORDER BY key LIMIT ?",
            "DELETE FROM _schedule WHERE key = ? RETURNING key",
            "SELECT id FROM _schedule_keys WHERE key = ?",
            "DELETE FROM _schedule_keys WHERE id <= (SELECT max(id) FROM _schedule_keys) - ?",
            "SELECT * FROM _schedule_dead WHERE id > ? ORDER BY id LIMIT ?",
            "SELECT * FROM _schedule_runs ORDER BY id DESC LIMIT ?",
        ];
        world
            .call(move |own| async move {
                for question in questions {
                    let params = vec![do_core::Value::from(1_i64); question.matches('?').count()];
                    let plan = own.state.sql().exec(&format!("EXPLAIN QUERY PLAN {question}"), params)?;
                    let steps: Vec<String> = plan.iter().map(|row| row.at(3)).collect::<Result<_, _>>()?;
                    let bounded = question.contains("LIMIT");
                    let whole = |step: &String| {
                        step.contains("TEMP B-TREE") || (step.starts_with("SCAN") && !bounded)
                    };
                    assert!(!steps.iter().any(whole), "{question}: {steps:?}");
                }
                Ok(())
            })
            .await;
    });
}
