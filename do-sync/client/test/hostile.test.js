/** Servers that lie, and listeners that leave in the middle. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { World, frame, msg, settled } from "./world.js";

test("a room that sends it away for ever is not asked without a pause", async () => {
  const hellos = {
    gap: (n) => [`a-${n}`, { gap: { after: "a-0", lost: 1 } }],
    part: (n) => [`a-${n}`, { gap: { after: "a-0" }, more: true, replay: 2 }],
    epoch: (n) => [`${n}-0`, {}],
  };
  for (const [name, hello] of Object.entries(hellos)) {
    for (const brings of [false, true]) {
      const [world, delays] = [new World(), []];
      await world.client();
      for (let n = 0; n < 50; n += 1) {
        const [at, more] = hello(n * 5);
        world.socket.greet(at, more);
        if (brings) world.socket.say(msg(Number(at.split("-")[1]) + 1));
        world.socket.end(4000);
        const [{ delay }] = world.of("close");
        delays.push(delay);
        await world.pass(delay);
      }
      assert.ok(delays.filter((delay) => delay === 0).length <= 2, `${name} ${brings} ${delays}`);
    }
  }
});

test("parts behind a gap are fetched without a pause", async () => {
  const world = new World();
  await world.connected({}, "a-5");
  world.socket.end(1006);
  await world.pass(250);
  world.heard.length = 0;
  for (let n = 0; n < 5; n += 1) {
    world.socket.greet(`b-${n}`, { more: true, replay: 1, ...(n === 0 && { gap: { after: "a-5", lost: null } }) });
    world.socket.say(msg(n + 1, n));
    await settled();
    await world.pass(0);
  }
  assert.deepEqual(world.of("close").map(({ delay }) => delay), [0, 0, 0, 0, 0]);
  assert.equal(world.of("message").length, 5);
});

test("who leaves in the middle of the greeting is told all of it by the next", async () => {
  for (const leaves of ["state", "gap", "snapshot"]) {
    const world = new World();
    const client = await world.connected({}, "a-1");
    let left = false;
    client.addEventListener(leaves, () => {
      if (left || client.state !== "open") return;
      left = true;
      client.close();
      client.connect();
    });
    world.socket.end();
    await world.pass(250);
    world.socket.greet("a-9", { gap: { after: "a-1", lost: 8 }, snapshot: 1 });
    await settled();
    assert.match(world.socket.url, /after=a-1$/, leaves);
    world.heard.length = 0;
    world.socket.greet("a-9", { gap: { after: "a-1", lost: 8 }, snapshot: 1 });
    assert.deepEqual(world.of("gap"), [{ after: "a-1", lost: 8 }], leaves);
    assert.deepEqual(world.of("snapshot"), [{ data: 1 }], leaves);
    assert.equal(world.of("open")[0].resumed, false);
  }
});

test("nothing follows stopped, whichever listener stops it", async () => {
  for (const stops of ["state", "gap", "snapshot", "open", "message", "joined", "raw", "event", "refused", "close"]) {
    const world = new World();
    const client = await world.client({ after: "b-1" });
    client.send("too long for it");
    client.addEventListener(stops, () => client.state !== "connecting" && client.close());
    world.socket.greet("a-1", { snapshot: 1, limits: { bytes: 5 }, ping: ["a", "b"], credit: 4 });
    world.socket.say(msg(2, "x"));
    world.socket.say({ t: "joined", s: 3, at: 1, member: "bob" });
    world.socket.say({ t: "ev", d: 1 });
    world.socket.say("raw");
    world.socket.end();
    await world.pass(60_000);
    assert.equal(world.types().at(-1), "stopped", stops);
    assert.equal(client.state, "stopped");
    assert.equal(world.timers, 0, stops);
  }
});

test("who stops while it waits hears stopped last", async () => {
  const world = new World();
  const client = await world.connected();
  client.addEventListener("state", ({ state }) => state === "waiting" && client.close());
  world.socket.end();
  await world.pass(60_000);
  assert.deepEqual(world.types(), ["stopped"]);
  assert.deepEqual([world.timers, world.sockets.length], [0, 1]);
});

test("numbers beyond what a number holds are no greeting, and no position", async () => {
  for (const at of ["a-9007199254740992", "a-9999999999999999", "a-18446744073709551615", "a--1", "a-1.5", "A-1", "-1", "a-", 5, null, {}]) {
    const world = new World();
    const client = await world.client();
    world.socket.greet(at);
    assert.equal(client.state, "connecting", String(at));
    assert.equal(client.position, undefined);
    await world.pass(10_000);
    assert.equal(client.state, "waiting");
  }
  const world = new World();
  const client = await world.client({ after: "a-9999999999999999" });
  assert.equal(world.socket.url, "wss://example.invalid/ws?room=a");
  world.socket.greet("a-3");
  assert.deepEqual(world.of("gap"), [{ after: "a-9999999999999999", lost: null }]);
  assert.equal(client.position, "a-3");
});

test("nonsense in a greeting is as nothing", async () => {
  const nonsense = [null, 5, "x", [], {}, [null], [[]], [{ id: 5 }], { bytes: "x" }, { after: 5, lost: "x" }, true, -1, 1e308];
  for (const field of ["replay", "members", "count", "gap", "ping", "credit", "limits", "more", "member", "socket"]) {
    for (const value of nonsense) {
      const world = new World();
      const client = await world.client();
      world.socket.greet("a-0", { [field]: value });
      world.socket.say(msg(1, "x"));
      world.socket.say({ t: "msg" });
      world.socket.say({ t: "hello", at: "b-7" });
      await world.pass(29_000);
      const said = world.sockets.flatMap(({ sent }) => sent);
      const acks = said.filter((text) => typeof text === "string" && text.startsWith('{"t":"ack"'));
      assert.equal(said.length, acks.length, `${field} ${JSON.stringify(value)} ${said}`);
      assert.equal(world.of("message").length, 1);
      assert.equal(client.position, "a-1", field);
      assert.ok(client.count >= 0 && client.count < Infinity, `${field} ${JSON.stringify(value)} ${client.count}`);
      client.close();
      assert.equal(world.timers, 0);
    }
  }
});

test("a ping that is no pair of texts is none", async () => {
  for (const ping of [[], ["a"], [1, 2], [null, null], ["a", 2], "ab"]) {
    const world = new World();
    await world.connected({}, "a-0", { ping });
    await world.pass(100_000);
    assert.deepEqual(world.sockets.flatMap(({ sent }) => sent), [], JSON.stringify(ping));
  }
});

test("frames that are cut off or turned around are not of the protocol", async () => {
  const world = new World();
  await world.connected();
  const whole = frame(1, 5, "ann", [1, 2]);
  for (let length = 0; length < 21; length += 1) world.socket.say(whole.slice(0, length));
  assert.equal(world.of("raw").length, 21);
  world.socket.say(whole);
  assert.equal(world.of("binary").length, 1);
  for (const text of ["null", "5", '"hello"', "[]", "{}", "", "{", '{"t":']) world.socket.say(text);
  assert.equal(world.of("raw").length, 8);
});

test("a server that says 4000 before it greets is not asked without a pause", async () => {
  const world = new World();
  await world.connected();
  world.socket.say(msg(1));
  const delays = [];
  for (let n = 0; n < 50; n += 1) {
    if (n > 0) world.socket.open();
    world.socket.end(4000);
    const [{ delay }] = world.of("close");
    delays.push(delay);
    await world.pass(delay);
  }
  assert.ok(delays.filter((delay) => delay === 0).length <= 2, String(delays));
});

test("members who are only counted stay counted once, whatever is told of them", async () => {
  const world = new World();
  const client = await world.connected({}, "a-0", { members: [{ id: "ann" }], count: 3 });
  const tell = (s, t, member) => world.socket.say({ t, s, at: 1, member, data: s });
  tell(1, "updated", "bob");
  assert.deepEqual([client.count, client.members.size], [3, 2]);
  tell(2, "updated", "bob");
  tell(3, "updated", "ann");
  tell(4, "joined", "eve");
  assert.deepEqual([client.count, client.members.size], [4, 3]);
  tell(5, "left", "zoe");
  assert.deepEqual([client.count, client.members.size], [3, 3]);
  tell(6, "left", "bob");
  tell(7, "left", "nobody");
  assert.equal(client.count, 2);
});
