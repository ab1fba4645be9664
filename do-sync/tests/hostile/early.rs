//! Publishing where one would not expect it: in the constructor, under a barrier, in an alarm and in close handlers.

use crate::probe::heard;
use do_core::{kit::Kit, prelude::*};
use do_sync::{History, Member, Room};

struct Early<S: ObjectState> {
    state: S,
    room: Room<S>,
}

impl<S: ObjectState> DurableObject<S> for Early<S> {
    fn new(state: S) -> Result<Self> {
        let history = History::new().max_age(Duration::from_secs(60));
        let room = Room::new(&state).history(history).alarm(Alarm::raw(&state));
        room.publish(&"new")?;
        Ok(Self { state, room })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() == "/follow" {
            return Ok(self.room.follow(&request)?);
        }
        let room = self.room.clone();
        let under = self.state.block_concurrency_while(async move { Ok(room.publish(&"barrier")?) }).await?;
        assert!(under.position.seq() > 0);
        Ok(self.room.enter(&request, Member::new("ann")?)?)
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        self.room.publish(&"alarm")?;
        Ok(self.room.on_alarm().await?)
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.room.publishing("closing").from(&gone).send()?;
        let position = self.room.set_data(&gone, "late").await?;
        self.room.publish(&position.is_some())?;
        self.room.leave(&gone).await?;
        Ok(())
    }
}

#[test]
fn a_room_is_usable_wherever_code_of_the_object_runs() {
    let kit = Kit::builder().object::<Early<_>>("EARLY").start().unwrap();
    let stub = kit.namespace("EARLY").unwrap().named("early").unwrap();
    kit.run(async {
        let ann = kit.connect(&stub, "/").await.unwrap();
        kit.settle().await;
        assert_eq!(heard(&ann), ["hello"]);
        kit.hibernate(&stub).await.unwrap();
        kit.advance(Duration::from_secs(70)).await;
        assert_eq!(heard(&ann), ["\"new\"", "\"alarm\""]);
        let later = kit.connect(&stub, "/").await.unwrap();
        kit.settle().await;
        assert_eq!(heard(&ann), ["\"barrier\"", "4500"]);
        kit.settle().await; // the close is answered
        // They are still there by another socket.
        assert_eq!(heard(&later), ["hello", "\"closing\"", "~ann", "true"]);
        let fay = kit.connect(&stub, "/follow").await.unwrap();
        later.close(Some((1_000, ""))).unwrap();
        kit.settle().await;
        assert_eq!(heard(&fay), ["hello", "\"closing\"", "-ann", "false"], "what nobody sees is not updated");
    });
}
