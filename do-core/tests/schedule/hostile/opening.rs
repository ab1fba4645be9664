//! Where a schedule is opened.

use super::*;

#[test]
fn a_constructor_that_puts_where_the_alarm_is_the_first_event_is_armed_by_its_run() {
    let world = World::new(noted);
    world.kit.run(async {
        world.call(|own| async move { Ok(own.schedule.put("a", Plan::at(own.after(10_000))).await?) }).await;
        behave(|behaviour| {
            behaviour.new = Rc::new(|own| {
                own.schedule.declare("b", Plan::at(own.after(500)))?;
                drop(own.schedule.slot("s").set(own.after(700)));
                drop(own.schedule.put("a", Plan::at(own.after(600))));
                Ok(())
            });
        });
        world.kit.evict(&world.stub);
        world.advance(10_010).await;
        behave(|behaviour| behaviour.new = Rc::new(|_| Ok(())));
        world.advance(5_000).await;
        assert_eq!(log(), ["b", "a", "s"]);
        world.is_sound().await;
    });
}

#[test]
fn a_schedule_that_is_opened_in_a_handler_or_twice_keeps_the_rule() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                let second = Schedule::open(&own.state)?;
                own.schedule.put("a", Plan::at(own.after(100))).await?;
                second.put("b", Plan::at(own.after(50))).await?;
                own.schedule.cancel("b").await?;
                second.cancel("a").await?;
                own.schedule.put("c", Plan::at(own.after(40))).await?;
                Schedule::open(&own.state)?.put("d", Plan::at(own.after(20))).await?;
                Ok(())
            })
            .await;
        world.is_sound().await;
        world.advance(1_000).await;
        assert_eq!(log(), ["d", "c"]);
        world.is_sound().await;
    });
}

#[test]
fn a_schedule_that_is_opened_in_the_alarm_runs_and_puts() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        let late = Schedule::open(&own.state)?;
        if job.name() == "a" {
            late.put("b", Plan::at(own.after(100))).await?;
        }
        Ok(())
    });
    behave(|behaviour| {
        behaviour.alarm = Some(act(async |own: Own, info: AlarmInfo| {
            let own = Own { schedule: Schedule::open(&own.state)?, ..own };
            own.run_due(info).await
        }));
    });
    world.kit.run(async {
        world.call(|own| async move { Ok(own.schedule.put("a", Plan::at(own.after(10_000))).await?) }).await;
        world.kit.evict(&world.stub);
        world.advance(11_000).await;
        assert_eq!(log(), ["a", "b"]);
        world.is_sound().await;
    });
}
