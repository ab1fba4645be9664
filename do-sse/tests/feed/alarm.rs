//! The object's own alarm that cannot be set: a fault that only the kit can make.

use super::{Log, next};
use do_core::{kit::Failing, kit::Kit, prelude::*};

#[test]
fn s6_a_heartbeat_whose_alarm_cannot_be_set_is_retried_and_heartbeats_go_on() {
    let kit = Kit::builder().object::<Log<_>>("LOG").start().unwrap();
    kit.run(async {
        let log = kit.namespace("LOG")?.named("a")?;
        let mut body = log.fetch(http::Request::get("http://x/").body(Body::empty())?).await?.into_body();
        next(&mut body).await.unwrap();
        kit.fail_next(&log, Failing::SetAlarm);
        kit.advance(Duration::from_secs(15)).await;
        assert_eq!(next(&mut body).await.unwrap(), ":\n\n");
        // The run that failed is tried again after two seconds, and sets the next.
        for _ in 0..3 {
            kit.advance(Duration::from_secs(17)).await;
            assert_eq!(next(&mut body).await.unwrap(), ":\n\n");
        }
        Ok::<(), Failure>(())
    })
    .unwrap();
}

#[test]
fn s6_who_comes_while_the_alarm_cannot_be_set_is_sent_away_and_the_next_is_let_in() {
    let kit = Kit::builder().object::<Log<_>>("LOG").start().unwrap();
    kit.run(async {
        let log = kit.namespace("LOG")?.named("a")?;
        let open = || http::Request::get("http://x/").body(Body::empty());
        kit.fail_next(&log, Failing::SetAlarm);
        let away = log.fetch(open()?).await?;
        assert_eq!(away.status(), 200);
        let text = away.into_body().text(100).await?;
        assert!(text.starts_with("retry: ") && text.ends_with("\n\n") && !text.contains("ready"), "{text}");
        let mut body = log.fetch(open()?).await?.into_body();
        assert!(next(&mut body).await.unwrap().contains("event: ready\n"));
        kit.advance(Duration::from_secs(15)).await;
        assert_eq!(next(&mut body).await.unwrap(), ":\n\n");
        Ok::<(), Failure>(())
    })
    .unwrap();
}
