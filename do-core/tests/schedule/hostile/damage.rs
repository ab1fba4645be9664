//! Rows that nobody here wrote, and a history that has no room.

use super::*;

#[test]
fn rows_that_are_damaged_are_each_a_matter_of_themselves() {
    let damages = [
        "due = 1152921504606846976, tick = 1152921504606846976",
        "due = -9223372036854775808, tick = -9223372036854775808",
        "attempt = -1",
        "attempt = 9223372036854775807",
        "running = 7",
        "terms = ''",
        "terms = 'null'",
        "terms = '{\"cadence\":{\"every\":{\"ms\":0,\"anchor\":0}}}'",
        "terms = '{\"cadence\":{\"every\":{\"ms\":1,\"anchor\":-9223372036854775808}}}'",
        "terms = '{\"cadence\":{\"cron\":{\"at\":\"x\",\"zone\":\"y\"}}}'",
        "terms = '{\"retry\":{\"runs\":0,\"first\":0,\"longest\":0}}'",
        "terms = '{\"retry\":{\"runs\":9,\"first\":18446744073709551615,\"longest\":18446744073709551615}}'",
        "terms = '{\"limit\":18446744073709551615}'",
        "terms = '{\"limit\":0}'",
        "terms = '{\"missed\":{\"skip\":18446744073709551615}}'",
        "payload = '{'",
        "payload = cast(x'ff00fe' as text)",
        "terms = cast(x'ff00fe' as text)",
        "name = ''",
        "name = cast(x'ff00fe' as text)",
        "tick = 0",
        "tick = 6942758399999",
    ];
    for damage in damages {
        for recurs in [false, true] {
            let world = World::new(async |_: Own, job: Job| {
                note(job.name());
                if job.name() == "well" { Ok(()) } else { Err(Failure::msg("as it should")) }
            });
            world.kit.run(async {
                world
                    .call(move |own| async move {
                        let damaged = if recurs {
                            Plan::every(Duration::from_millis(10))?
                        } else {
                            Plan::at(own.after(10))
                        };
                        own.schedule.put("damaged", damaged).await?;
                        own.schedule.put("well", Plan::at(own.after(100))).await?;
                        own.exec(&format!("UPDATE _schedule SET {damage} WHERE key = 'damaged'"))?;
                        Ok(())
                    })
                    .await;
                world.advance(150).await;
                let seen = log();
                assert!(seen.iter().any(|name| name == "well"), "{damage}: {seen:?}");
                assert!(!seen.iter().any(|line| line.starts_with("the run failed")), "{damage}: {seen:?}");
                world
                    .call(|own| async move {
                        own.schedule.pending("", 9)?;
                        own.schedule.history(9)?;
                        own.schedule.dead_letters(0, 9)?;
                        own.schedule.check().await?;
                        Ok(())
                    })
                    .await;
                world.is_sound().await;
                // Putting it mends it.
                world
                    .call(|own| async move {
                        Ok(own.schedule.put("damaged", Plan::at(own.after(1_000_000))).await?)
                    })
                    .await;
                world.is_sound().await;
            });
        }
    }
}
