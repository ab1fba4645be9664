/** When a client connects, comes back, waits and stops. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { RoomClient, codes, retries } from "../client.js";
import { World, msg, settled } from "./world.js";

test("who listens right after the constructor misses nothing", async () => {
  const world = new World();
  const client = new RoomClient("wss://example.invalid/ws", world.options({ WebSocket: class { constructor() { throw new Error("no"); } } }));
  world.listen(client);
  assert.equal(client.state, "connecting");
  await settled();
  assert.deepEqual(world.of("stopped"), [{ code: 1006, reason: "Error: no", unsent: [] }]);
});

test("an address of a page may be relative, and http means ws", async () => {
  const world = new World();
  await world.client({}, "/ws?room=a%20b#x");
  await world.client({}, "ws?room=a");
  await world.client({}, new URL("http://other.invalid/ws"));
  assert.deepEqual(world.sockets.map(({ url }) => url), [
    "wss://example.invalid/ws?room=a%20b",
    "wss://example.invalid/room/ws?room=a",
    "ws://other.invalid/ws",
  ]);
});

test("a bad address and bad numbers are told to the caller at once", () => {
  const world = new World();
  assert.throws(() => new RoomClient("http://", world.options()), TypeError);
  for (const minDelay of [-1, NaN, "soon"]) {
    assert.throws(() => new RoomClient("wss://a.invalid", world.options({ minDelay })), RangeError);
  }
  assert.equal(world.sockets.length, 0);
});

test("open is the greeting, not the socket", async () => {
  const world = new World();
  const client = await world.client();
  world.socket.open();
  assert.equal(client.state, "connecting");
  assert.equal(client.position, undefined);
  world.socket.say({ t: "hello", at: "k3x-7", member: "ann", replay: 2, members: [], count: 0 });
  assert.equal(client.state, "open");
  assert.equal(client.position, "k3x-7");
  assert.deepEqual(world.of("open"), [{ member: "ann", resumed: false, replay: 2 }]);
});

test("an attempt without a greeting ends after the time-out", async () => {
  const world = new World();
  const client = await world.client();
  world.socket.open();
  await world.pass(9_999);
  assert.equal(client.state, "connecting");
  await world.pass(1);
  assert.equal(client.state, "waiting");
  assert.deepEqual(world.of("close"), [{ code: 1006, reason: "connect time-out", delay: 250 }]);
  assert.deepEqual(world.socket.closed, { code: 4000, reason: "connect time-out" });
});

test("the pause is a random part of a bound that doubles up to the longest", async () => {
  const world = new World();
  await world.client({ minDelay: 100, maxDelay: 1_000 });
  const delays = [];
  for (const chance of [1, 1, 1, 1, 1, 1, 0.25, 0]) {
    world.chance = chance;
    world.socket.end();
    const [{ delay }] = world.of("close");
    delays.push(delay);
    assert.equal(world.next, delay);
    await world.pass(delay);
  }
  assert.deepEqual(delays, [100, 200, 400, 800, 1_000, 1_000, 250, 0]);
  assert.equal(world.sockets.length, 9);
});

test("a thousand failures do not end the pauses", async () => {
  const world = new World();
  await world.client({ maxDelay: 10 });
  for (let i = 0; i < 1_100; i += 1) {
    world.socket.end();
    await world.pass(10);
  }
  assert.equal(world.sockets.length, 1_101);
  assert.deepEqual(new Set(world.of("close").map(({ delay }) => delay)), new Set([5]));
});

test("a pause longer than the platform's timers can wait is shortened to what they can", async () => {
  const world = new World();
  world.chance = 1;
  await world.client({ minDelay: Infinity, maxDelay: Infinity });
  world.socket.end();
  assert.equal(world.next, 2 ** 31 - 1);
});

test("a stable connection ends the doubling, a short one does not", async () => {
  const world = new World();
  world.chance = 1;
  await world.client();
  const delay = async (open) => {
    if (open !== undefined) {
      world.socket.greet();
      await world.pass(open);
    }
    world.socket.end();
    const [{ delay }] = world.of("close");
    await world.pass(delay);
    return delay;
  };
  assert.equal(await delay(), 500);
  assert.equal(await delay(), 1_000);
  assert.equal(await delay(4_999), 2_000);
  assert.equal(await delay(5_000), 500);
});

test("close codes: the table of the protocol", () => {
  const back = [1001, 1005, 1006, 1011, 1012, 1013, 1014];
  for (const [from, to] of [[3000, 3499], [4000, 4499]]) for (let code = from; code <= to; code += 1) back.push(code);
  const all = Array.from({ length: 6_000 }, (_, code) => code);
  assert.deepEqual(all.filter(retries), back);
  assert.deepEqual(codes, { RESYNC: 4000, REPLACED: 4500, KICKED: 4501 });
});

test("a code that says stop stops, with the code and the reason", async () => {
  for (const code of [1000, 1008, 4500, 4501]) {
    const world = new World();
    const client = await world.connected();
    world.socket.end(code, "because");
    assert.deepEqual([client.state, client.code, client.reason], ["stopped", code, "because"]);
    assert.deepEqual(world.types(), ["stopped"]);
    await world.pass(1e9);
    assert.equal(world.sockets.length, 1);
    assert.equal(world.timers, 0);
  }
});

test("4000 comes back at once, but not twice before anything was stable", async () => {
  const world = new World();
  world.chance = 1;
  await world.connected();
  world.socket.end(codes.RESYNC);
  assert.equal(world.of("close")[0].delay, 0);
  await world.pass(0);
  world.socket.greet();
  world.socket.end(codes.RESYNC);
  assert.equal(world.of("close")[0].delay, 500);
  await world.pass(500);
  world.socket.greet();
  await world.pass(5_000);
  world.socket.end(codes.RESYNC);
  assert.equal(world.of("close")[0].delay, 0);
});

test("4000 after something new comes back at once, as often as that happens", async () => {
  const world = new World();
  const client = await world.connected();
  for (let i = 0; i < 5; i += 1) {
    world.socket.say(msg(i + 1, i));
    world.socket.end(codes.RESYNC);
    assert.equal(world.of("close")[0].delay, 0);
    await world.pass(0);
    world.socket.greet(client.position);
  }
  world.socket.end(codes.RESYNC);
  assert.equal(world.of("close")[0].delay, 250);
});

test("attempts that never open end when the user says so, others in between start the count anew", async () => {
  const world = new World();
  const client = await world.client({ maxFailures: 3, maxDelay: 10 });
  const fail = async () => {
    world.socket.end();
    await world.pass(10);
  };
  await fail();
  await fail();
  world.socket.greet();
  await fail(); // it had opened
  await fail();
  await fail();
  assert.equal(client.state, "connecting");
  await fail();
  assert.deepEqual([client.state, client.code], ["stopped", 1006]);
});

test("close stops, tells the room, and the old socket says nothing more", async () => {
  const world = new World();
  const client = await world.connected();
  client.close(4600, "going");
  assert.deepEqual(world.socket.closed, { code: 4600, reason: "going" });
  assert.deepEqual(world.of("stopped"), [{ code: 4600, reason: "going", unsent: [] }]);
  world.socket.say({ t: "msg", s: 1, at: 0, d: 1 });
  world.socket.end(1006);
  client.close();
  assert.deepEqual(world.types(), []);
  assert.equal(client.code, 4600);
});

test("a code that a browser does not send still closes", async () => {
  const world = new World();
  const client = await world.connected();
  client.close(1001, "x".repeat(200));
  assert.deepEqual(world.socket.closed, { code: undefined, reason: "" });
  assert.equal(client.state, "stopped");
});

test("connect starts again where it was, and does nothing while it runs", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-9");
  client.close();
  client.connect();
  client.connect();
  await settled();
  assert.equal(world.sockets.length, 2);
  assert.equal(world.socket.url, "wss://example.invalid/ws?room=a&after=k3x-9");
  assert.equal(client.code, undefined);
});

test("close in the middle of an attempt ends it", async () => {
  const world = new World();
  let give;
  const client = await world.client({}, () => new Promise((resolve) => (give = resolve)));
  client.close();
  give("wss://example.invalid/");
  await settled();
  assert.equal(world.sockets.length, 0);
  assert.equal(world.timers, 0);
});

test("an address and sub-protocols that are functions are asked before each attempt", async () => {
  const world = new World();
  let asked = 0;
  await world.client({ protocols: () => ["v1", `token-${asked}`] }, async () => `wss://example.invalid/ws?t=${++asked}`);
  world.socket.greet("k3x-5");
  world.socket.end();
  await world.pass(250);
  assert.deepEqual(
    world.sockets.map(({ url, protocols }) => [url, protocols]),
    [
      ["wss://example.invalid/ws?t=1", ["v1", "token-1"]],
      ["wss://example.invalid/ws?t=2&after=k3x-5", ["v1", "token-2"]],
    ],
  );
});

test("an address that cannot be had is a failed attempt, and one that never comes runs into the time-out", async () => {
  const world = new World();
  const answers = [() => Promise.reject(new Error("no token")), () => { throw new Error("no"); }, () => "http://", () => new Promise(() => {}), () => "/ws"];
  await world.client({}, () => answers.shift()());
  for (const reason of ["Error: no token", "Error: no", "TypeError: Invalid URL"]) {
    const [close] = world.of("close");
    assert.deepEqual([close.code, close.reason], [1006, reason]);
    await world.pass(close.delay);
  }
  await world.pass(10_000);
  assert.equal(world.of("close")[0].reason, "connect time-out");
  await world.pass(15_000);
  assert.equal(world.sockets.length, 1);
});

test("offline: an attempt now and then that does not count, and at once when the network is back", async () => {
  const world = new World();
  world.chance = 1;
  const client = await world.connected({ maxFailures: 2 });
  world.window.navigator.onLine = false;
  world.socket.end();
  for (let i = 0; i < 5; i += 1) {
    assert.equal(world.of("close")[0].delay, 15_000);
    await world.pass(15_000);
    world.socket.end();
  }
  assert.equal(client.state, "waiting");
  assert.equal(world.sockets.length, 6);
  world.window.navigator.onLine = true;
  world.window.dispatchEvent(new Event("online"));
  await settled();
  assert.equal(world.sockets.length, 7);
  world.heard.length = 0;
  world.socket.end();
  assert.equal(world.of("close")[0].delay, 500);
});

test("the reader is back: no waiting, unless there is no network", async () => {
  const world = new World();
  await world.client();
  const show = async (visibilityState) => {
    world.window.document.visibilityState = visibilityState;
    world.window.document.dispatchEvent(new Event("visibilitychange"));
    await settled();
    return world.sockets.length;
  };
  world.socket.end();
  assert.equal(await show("hidden"), 1);
  assert.equal(await show("visible"), 2);
  assert.equal(await show("visible"), 2); // the attempt is under way
  world.window.navigator.onLine = false;
  world.socket.end();
  assert.equal(await show("visible"), 2);
});

test("a page in the browser's cache has no connection, and continues when it is shown again", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-4");
  const page = (type, persisted) => world.window.dispatchEvent(Object.assign(new Event(type), { persisted }));
  page("pagehide", false); // goes for good: the browser closes
  assert.equal(client.state, "open");
  page("pagehide", true);
  assert.equal(client.state, "waiting");
  assert.equal(world.socket.closed.code, 4000);
  assert.deepEqual(world.of("close"), [{ code: 1001, reason: "the page is put away", delay: 15_000 }]);
  assert.equal(world.timers, 0);
  world.window.dispatchEvent(new Event("online")); // not ours to see
  await settled();
  assert.equal(world.sockets.length, 1);
  page("pageshow", true);
  await settled();
  assert.equal(world.socket.url, "wss://example.invalid/ws?room=a&after=k3x-4");
  world.socket.end();
  page("pagehide", true); // while it waits
  assert.equal(world.timers, 0);
  page("pageshow", true);
  await settled();
  assert.equal(world.sockets.length, 3);
});

test("what is stopped no longer listens to the page", async () => {
  const world = new World();
  const client = await world.connected();
  client.close();
  world.window.dispatchEvent(new Event("online"));
  world.window.dispatchEvent(Object.assign(new Event("pagehide"), { persisted: true }));
  world.window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  await settled();
  assert.deepEqual([client.state, world.sockets.length, world.timers], ["stopped", 1, 0]);
});

test("reconnections leave nothing behind", async () => {
  const world = new World();
  const client = await world.client();
  let listeners = 0;
  const add = world.window.addEventListener;
  world.window.addEventListener = (...all) => ((listeners += 1), add.apply(world.window, all));
  for (let i = 0; i < 1_000; i += 1) {
    world.socket.greet(`k3x-${i}`, { members: [{ id: `m${i}` }], ping: ["ping", "pong"] });
    assert.equal(world.timers, 2); // the ping and the doubling
    world.socket.end();
    assert.equal(world.timers, 1); // the next attempt
    await world.pass(world.next);
  }
  assert.equal(listeners, 0);
  assert.equal(client.members.size, 1);
  assert.equal(client.bufferedAmount, 0);
});

test("a connection that is silent is tried with a ping, and given up without an answer", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-0", { ping: ["p?", "p!"] });
  await world.pass(29_000);
  world.socket.say({ t: "ev", d: 1 });
  await world.pass(29_999);
  assert.deepEqual(world.socket.sent, []);
  await world.pass(1);
  assert.deepEqual(world.socket.sent, ["p?"]);
  world.socket.say("p!");
  assert.deepEqual(world.types(), ["event"]); // the answer is nobody's message
  await world.pass(30_000);
  assert.deepEqual(world.socket.sent, ["p?", "p?"]);
  await world.pass(9_999);
  assert.equal(client.state, "open");
  await world.pass(1);
  assert.equal(client.state, "waiting");
  assert.deepEqual(world.of("close"), [{ code: 1006, reason: "no answer to a ping", delay: 250 }]);
  assert.equal(world.socket.closed.code, 4000);
  await world.pass(250);
  assert.equal(world.sockets.length, 2); // without waiting for the dead one
});

test("a room that does not answer pings gets none", async () => {
  const world = new World();
  const client = await world.connected();
  await world.pass(1e9);
  assert.deepEqual(world.socket.sent, []);
  assert.equal(client.state, "open");
});

test("when the network, the reader or the page is back, an open connection is tried, once", async () => {
  const world = new World();
  const client = await world.connected({}, "k3x-0", { ping: ["ping", "pong"] });
  world.window.dispatchEvent(new Event("offline"));
  assert.deepEqual(world.socket.sent, ["ping"]);
  await world.pass(9_000);
  world.window.dispatchEvent(new Event("online"));
  world.window.document.dispatchEvent(new Event("resume"));
  assert.deepEqual(world.socket.sent, ["ping"]); // a second would only move the end
  await world.pass(1_000);
  assert.equal(client.state, "waiting");
});

test("a greeting after the client has stopped, or of an earlier attempt, is not heard", async () => {
  const world = new World();
  const client = await world.client();
  const [first] = world.sockets;
  await world.pass(10_000 + 250);
  assert.equal(world.sockets.length, 2);
  first.greet("old-1");
  first.end(4500);
  assert.equal(client.state, "connecting");
  assert.equal(client.position, undefined);
});
