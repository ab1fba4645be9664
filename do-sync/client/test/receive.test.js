/** What a client makes of what comes: sequence, resumption, presence, malformed frames. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { codes } from "../client.js";
import { World, frame, msg } from "./world.js";

test("messages come in order with what is known of them, and the position is theirs", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-16", { replay: 1 });
  const positions = [];
  client.addEventListener("message", () => positions.push(client.position));
  world.socket.say(msg(17, { text: "old" }, "bob"));
  world.socket.say(msg(18, "new"));
  assert.deepEqual(world.of("message"), [
    { seq: 17, at: 1017, from: "bob", data: { text: "old" }, replayed: true },
    { seq: 18, at: 1018, from: undefined, data: "new", replayed: false },
  ]);
  assert.deepEqual(positions, ["k3x-17", "k3x-18"]);
});

test("binary messages, also with a sender in several bytes and with nothing in them", async () => {
  const world = new World();
  const client = await world.connected();
  world.socket.say(frame(1, 1764000000000, "änn", [1, 2, 3]));
  world.socket.say(frame(2, -1, "", []));
  assert.deepEqual(world.of("binary"), [
    { seq: 1, at: 1764000000000, from: "änn", data: new Uint8Array([1, 2, 3]), replayed: false },
    { seq: 2, at: -1, from: undefined, data: new Uint8Array(), replayed: false },
  ]);
  assert.equal(client.position, "k3x-2");
});

test("all kinds are one sequence", async () => {
  const world = new World();
  const client = await world.connected();
  world.socket.say(msg(1, 1));
  world.socket.say({ t: "joined", s: 2, at: 1, member: "bob", data: { colour: "red" } });
  world.socket.say(frame(3, 1, "bob", [1]));
  world.socket.say({ t: "ev", d: "typing" });
  world.socket.say({ t: "left", s: 4, at: 1, member: "bob" });
  assert.deepEqual(world.types(), ["message", "joined", "binary", "event", "left"]);
  assert.equal(client.position, "k3x-4");
});

test("a hole: the client closes with 4000 and continues from the last one that came", async () => {
  for (const wrong of [msg(7, "hole"), msg(5, "twice"), msg(3, "earlier"), frame(9, 1, "", []), { t: "left", s: 9, member: "x" }]) {
    const world = new World();
    await world.connected({}, "k3x-4");
    world.socket.say(msg(5, "fine"));
    world.socket.say(wrong);
    world.socket.say(msg(6, "on a connection that was given up"));
    assert.deepEqual(world.types(), ["message", "close"]);
    assert.equal(world.sockets[0].closed.code, 4000);
    await world.pass(0);
    assert.equal(world.socket.url, "wss://example.invalid/ws?room=a&after=k3x-5");
    world.socket.greet("k3x-5", { replay: 1 });
    world.socket.say(msg(6, "now"));
    assert.deepEqual(world.of("open"), [{ member: "ann", resumed: true, replay: 1 }]);
    assert.deepEqual(world.of("message").map(({ data }) => data), ["now"]);
  }
});

test("reconnections lose nothing and repeat nothing", async () => {
  const world = new World();
  await world.client();
  const log = Array.from({ length: 200 }, (_, i) => msg(i + 1, i + 1));
  let published = 0;
  while (published < log.length) {
    const after = Number(new URL(world.socket.url).searchParams.get("after")?.split("-")[1] ?? 0);
    world.socket.greet(`k3x-${after}`, { replay: published - after });
    for (const old of log.slice(after, published)) world.socket.say(old);
    const next = published + 7;
    for (const live of log.slice(published, next)) {
      published += 1;
      // The last two of each connection are lost with it.
      if (published <= next - 2 || published === log.length) world.socket.say(live);
    }
    if (published >= log.length) break;
    world.socket.end();
    await world.pass(15_000);
  }
  assert.deepEqual(world.of("message").map(({ data }) => data), log.map(({ d }) => d));
  assert.deepEqual(world.of("gap"), []);
});

test("the option after continues where an earlier page was", async () => {
  const world = new World();
  const client = await world.client({ after: "k3x-12" });
  assert.equal(client.position, "k3x-12");
  assert.equal(new URL(world.socket.url).searchParams.get("after"), "k3x-12");
  world.socket.greet("k3x-12", { replay: 1 });
  assert.equal(world.of("open")[0].resumed, true);
  assert.deepEqual(world.types(), []);
});

test("a gap is told before what follows, and the new position is the room's", async () => {
  const world = new World();
  const client = await world.client({ after: "k3x-2" });
  world.socket.greet("k3x-14", { replay: 1, gap: { after: "k3x-2", lost: 12 }, snapshot: { n: 1 } });
  world.socket.say(msg(15, "x"));
  assert.deepEqual(world.heard.map(({ type }) => type), ["gap", "snapshot", "open", "message"]);
  assert.equal(world.of("open")[0].resumed, false);
  assert.deepEqual(world.of("gap"), [{ after: "k3x-2", lost: 12 }]);
  assert.deepEqual(world.of("snapshot"), [{ data: { n: 1 } }]);
  assert.equal(client.position, "k3x-15");
});

test("a server that continues elsewhere without a word leaves a gap too", async () => {
  for (const [at, lost] of [["k3x-20", 8], ["k3x-3", null], ["other-12", null]]) {
    const world = new World();
    await world.client({ after: "k3x-12" });
    world.socket.greet(at);
    assert.deepEqual(world.of("gap"), [{ after: "k3x-12", lost }]);
  }
});

test("what is no position is not sent, and is a gap", async () => {
  const world = new World();
  await world.client({ after: "k3x-12&room=b" });
  assert.equal(world.socket.url, "wss://example.invalid/ws?room=a");
  world.socket.greet();
  world.socket.end();
  await world.pass(250);
  world.socket.greet();
  assert.deepEqual(world.of("gap"), [{ after: "k3x-12&room=b", lost: null }]); // once
});

test("without a position there is nothing to miss", async () => {
  for (const after of [undefined, null, ""]) {
    const world = new World();
    await world.client({ after });
    world.socket.greet("k3x-40");
    assert.deepEqual(world.types(), ["open"]);
  }
});

test("a snapshot that is null is one", async () => {
  const world = new World();
  await world.client();
  world.socket.greet("k3x-0", { snapshot: null });
  assert.deepEqual(world.of("snapshot"), [{ data: null }]);
});

test("members: those of the greeting, then who comes and goes; all are counted", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-0", { members: [{ id: "ann" }, { id: "bob", data: 1 }], count: 300 });
  assert.deepEqual([...client.members], [["ann", undefined], ["bob", 1]]);
  assert.equal(client.member, "ann");
  assert.equal(client.count, 300);
  world.socket.say({ t: "joined", s: 1, at: 1, member: "cid", data: 2 });
  world.socket.say({ t: "updated", s: 2, at: 1, member: "cid", data: 3 });
  assert.deepEqual(world.of("updated"), [{ seq: 2, replayed: false, at: 1, member: "cid", data: 3 }]);
  assert.equal(client.count, 301);
  world.socket.say({ t: "left", s: 3, at: 1, member: "bob" });
  world.socket.say({ t: "left", s: 4, at: 1, member: "one of the unlisted" });
  assert.equal(client.count, 299);
  assert.deepEqual([...client.members], [["ann", undefined], ["cid", 3]]);
  const { members } = client;
  world.socket.end();
  assert.equal(members.size, 2); // as it last was
  await world.pass(250);
  world.socket.greet("k3x-4", { members: [{ id: "dan" }], count: 1 });
  assert.deepEqual([...members.keys()], ["dan"]); // the same map
});

test("old comings and goings are told but change nothing: the greeting is newer", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-0", { replay: 2, members: [{ id: "ann" }], count: 1 });
  world.socket.say({ t: "left", s: 1, at: 1, member: "ann" });
  world.socket.say({ t: "joined", s: 2, at: 1, member: "eve" });
  assert.deepEqual([...client.members.keys()], ["ann"]);
  assert.deepEqual(world.heard.map(({ type, member, replayed }) => [type, member, replayed]), [
    ["left", "ann", true],
    ["joined", "eve", true],
  ]);
});

test("what is not of the protocol is handed over as it came", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-0", { ping: ["ping", "pong"] });
  const strange = ["", "null", "7", '"msg"', "[]", "{", "{}", '{"type":"change"}', "ping", "\u0000"];
  for (const text of strange) world.socket.say(text);
  const long = frame(1, 1, "ann", []);
  const bytes = [new ArrayBuffer(0), new ArrayBuffer(17), long.slice(0, 20), new Uint8Array(18).buffer, frame(2n ** 63n, 1, "", [])];
  for (const data of bytes) world.socket.say(data);
  assert.deepEqual(world.of("raw").map(({ data }) => data), [...strange, ...bytes]);
  assert.deepEqual([world.types(), client.position, client.state], [[], "k3x-0", "open"]);
});

test("frames that are unknown or wrong are ignored", async () => {
  const world = new World();
  const client = await world.connected();
  const wrong = [
    '{"t":1}', '{"t":null}', '{"t":"later","s":1}', '{"t":"msg"}', '{"t":"msg","s":"1"}', '{"t":"msg","s":1.5}',
    '{"t":"msg","s":1e300}', '{"t":"joined","s":1}', '{"t":"left","s":1,"member":7}', '{"t":"hello","at":"k3x-9"}',
    '{"t":"__proto__","s":1,"member":"x"}', '{"t":["joined"],"s":1,"member":"x"}',
  ];
  for (const text of wrong) world.socket.say(text);
  assert.deepEqual([world.types(), client.position, client.state], [[], "k3x-0", "open"]);
});

test("before the greeting there is no frame, and a greeting without a position is none", async () => {
  const world = new World();
  const client = await world.client();
  world.socket.open();
  for (const data of [msg(1, 1), { t: "ev" }, { t: "hello" }, { t: "hello", at: 7 }, { t: "hello", at: "K3X-7" }, { t: "hello", at: "a-b" }]) {
    world.socket.say(data);
  }
  world.socket.say(frame(1, 1, "", []));
  world.socket.say("mine");
  assert.equal(client.state, "connecting");
  assert.deepEqual(world.types(), ["raw", "raw"]);
});

test("what was missed comes in parts, at once one after the other, and only then the client is in the room", async () => {
  const world = new World();
  const client = await world.client({ after: "k3x-0", maxFailures: 1 });
  assert.equal(client.send("mine"), "queued");
  world.socket.greet("k3x-0", { more: true, replay: 2, members: undefined, count: undefined, ping: ["ping", "pong"] });
  world.socket.say(msg(1, 1));
  await world.pass(9_999); // a part may take longer than a greeting
  world.socket.say(frame(2, 1, "", [2]));
  assert.equal(client.state, "waiting");
  assert.deepEqual(world.types(), ["message", "binary", "close"]);
  await world.pass(0);
  assert.equal(new URL(world.socket.url).searchParams.get("after"), "k3x-2");
  world.socket.greet("k3x-2", { more: true, replay: 2 });
  world.socket.say(msg(3, 3));
  world.socket.end(codes.RESYNC); // the room was faster
  await world.pass(0);
  world.socket.greet("k3x-3", { replay: 1, members: [{ id: "ann" }], count: 1 });
  assert.deepEqual([client.state, client.count], ["open", 1]);
  world.socket.say(msg(4, 4));
  assert.deepEqual(world.of("message").map(({ data, replayed }) => [data, replayed]), [[3, true], [4, true]]);
  assert.deepEqual(world.of("open"), [{ member: "ann", resumed: true, replay: 1 }]);
  assert.deepEqual(world.sockets.map(({ sent }) => sent), [[], [], ["mine"]]);
});

test("a part that does not come is a lost connection, and a gap before it is not forgotten", async () => {
  const world = new World();
  await world.client({ after: "old-3" });
  world.socket.greet("k3x-0", { more: true, replay: 2, gap: { after: "old-3", lost: null }, snapshot: 7 });
  assert.deepEqual(world.types(), ["gap", "snapshot"]);
  world.socket.say(msg(1, 1));
  await world.pass(10_000);
  assert.equal(world.of("close")[0].reason, "connect time-out");
  await world.pass(250);
  world.socket.greet("k3x-1");
  assert.deepEqual(world.of("open"), [{ member: "ann", resumed: false, replay: 0 }]);
  world.socket.end();
  await world.pass(500);
  world.socket.greet("k3x-1");
  assert.equal(world.of("open")[0].resumed, true);
});

test("a greeting with nonsense in it is read as far as it makes sense", async () => {
  const world = new World();
  const client = await world.client();
  world.socket.open();
  const nonsense = { members: [null, 7, {}, { id: 7 }, { id: "ann" }], count: "many", replay: {}, ping: "ping", credit: "x", limits: null };
  world.socket.say({ t: "hello", at: "k3x-0", ...nonsense });
  assert.equal(client.state, "open");
  assert.deepEqual([...client.members.keys()], ["ann"]);
  assert.equal(client.count, 1);
  client.send("x".repeat(100_000));
  await world.pass(1e6);
  assert.equal(world.socket.sent.length, 1);
});

test("with credit the client tells how much has arrived, at each quarter", async () => {
  const world = new World();
  await world.client();
  world.socket.open();
  const hello = JSON.stringify({ t: "hello", at: "k3x-0", credit: 400 });
  world.socket.say(hello);
  assert.deepEqual(world.socket.sent, []);
  world.socket.say("ä".repeat((99 - hello.length) >> 1));
  assert.deepEqual(world.socket.sent, []);
  world.socket.say(new ArrayBuffer(100));
  const first = JSON.parse(world.socket.sent[0]);
  assert.deepEqual(first, { t: "ack", b: hello.length + 2 * ((99 - hello.length) >> 1) + 100 });
  assert.match(world.socket.sent[0], /^\{"t":"ack","b":\d+\}$/);
  world.socket.say("x".repeat(99));
  assert.equal(world.socket.sent.length, 1);
  world.socket.say("x");
  assert.equal(world.socket.sent[1], '{"t":"ack","b":100}');
});

test("without credit there are no acknowledgements", async () => {
  const world = new World();
  await world.connected();
  world.socket.say("x".repeat(1_000_000));
  assert.deepEqual(world.socket.sent, []);
});

test("a listener that throws does not break the client", () => {
  // By itself, because Node.js ends a process for it that does not say otherwise.
  const program = `
    import { World, msg } from "./world.js";
    const thrown = [];
    process.on("uncaughtException", (error) => thrown.push(error.message));
    const world = new World();
    const client = await world.client();
    for (const type of ["state", "open", "message", "close"]) client.addEventListener(type, () => { throw new Error(type); });
    world.socket.greet();
    world.socket.say(msg(1, 1));
    world.socket.say(msg(2, 2));
    world.socket.end();
    await world.pass(250);
    console.log(JSON.stringify([world.socket.url, world.of("message").length, thrown]));`;
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program], { cwd: import.meta.dirname ?? new URL(".", import.meta.url).pathname });
  assert.deepEqual(JSON.parse(output), [
    "wss://example.invalid/ws?room=a&after=k3x-2", 2,
    ["state", "open", "message", "message", "state", "close", "state"],
  ]);
});

test("a listener may close the client in the middle of a greeting", async () => {
  const world = new World();
  const client = await world.client({ after: "k3x-1" });
  client.addEventListener("gap", () => client.close());
  world.socket.greet("k3x-9", { gap: { after: "k3x-1", lost: 8 }, snapshot: 1, credit: 1 });
  assert.deepEqual(world.types(), ["gap", "stopped"]);
  assert.deepEqual(world.socket.sent, []);
});
