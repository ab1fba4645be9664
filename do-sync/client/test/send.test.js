/** What a client does with what is to be sent: now, later or not at all, and never without a bound. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "./world.js";

test("while it is open a message goes at once", async () => {
  const world = new World();
  const client = await world.connected();
  assert.equal(client.send("hello"), "sent");
  assert.deepEqual(world.socket.sent, ["hello"]);
});

test("before the greeting it is queued, and goes in order before anything that a listener sends", async () => {
  const world = new World();
  const client = await world.client();
  client.addEventListener("open", () => client.send("3"));
  assert.equal(client.send("1"), "queued");
  world.socket.open();
  assert.equal(client.send("2"), "queued");
  assert.deepEqual(world.socket.sent, []);
  assert.equal(client.bufferedAmount, 2);
  world.socket.greet();
  assert.deepEqual(world.socket.sent, ["1", "2", "3"]);
  assert.equal(client.bufferedAmount, 0);
});

test("the queue is bounded in messages and in bytes, and a full one does not throw", async () => {
  const world = new World();
  const client = await world.client({ queueMessages: 3, queueBytes: 10 });
  assert.deepEqual(["äää", "1234", "5", ""].map((data) => client.send(data)), ["queued", "queued", "refused", "queued"]);
  assert.equal(client.send(""), "refused");
  world.socket.greet();
  assert.deepEqual(world.socket.sent, ["äää", "1234", ""]);
  assert.equal(client.send("5"), "sent");
});

test("the queue outlives reconnections, and what was sent is not sent again", async () => {
  const world = new World();
  const client = await world.connected();
  client.send("sent, perhaps lost");
  world.socket.end();
  assert.equal(client.send("queued"), "queued");
  await world.pass(250);
  world.socket.end();
  await world.pass(15_000);
  world.socket.greet();
  assert.deepEqual(world.socket.sent, ["queued"]);
});

test("a socket that is closing takes nothing: it is queued", async () => {
  const world = new World();
  const client = await world.connected();
  world.socket.readyState = 2;
  assert.equal(client.send("late"), "queued");
  world.socket.end();
  await world.pass(250);
  world.socket.greet();
  assert.deepEqual(world.socket.sent, ["late"]);
});

test("a socket that does not take it loses nothing", async () => {
  const world = new World();
  const client = await world.client();
  client.send("1");
  client.send("2");
  world.socket.send = () => { throw new Error("broken"); };
  world.socket.greet();
  assert.equal(client.send("3"), "queued");
  world.socket.end();
  await world.pass(250);
  world.socket.greet();
  assert.deepEqual(world.socket.sent, ["1", "2", "3"]);
});

test("what waits in the socket is bounded too", async () => {
  const world = new World();
  const client = await world.connected({ bufferBytes: 100 });
  world.socket.bufferedAmount = 95;
  assert.equal(client.bufferedAmount, 95);
  assert.equal(client.send("123456"), "refused");
  assert.equal(client.send("12345"), "sent");
});

test("what is longer than the room takes is refused, and told when that was not known", async () => {
  const world = new World();
  const client = await world.client();
  client.send("12345678901");
  client.send("1234567890");
  world.socket.greet("k3x-0", { limits: { bytes: 10 } });
  assert.deepEqual(world.socket.sent, ["1234567890"]);
  assert.deepEqual(world.of("refused"), [{ data: "12345678901" }]);
  assert.equal(client.send("ä".repeat(6)), "refused");
  assert.equal(client.send("ä".repeat(5)), "sent");
});

test("what is stopped sends nothing, and gives back what was queued", async () => {
  const world = new World();
  const client = await world.client();
  client.send("1");
  client.send("2");
  client.close();
  assert.deepEqual(world.of("stopped"), [{ code: 1000, reason: "", unsent: ["1", "2"] }]);
  assert.equal(client.send("3"), "refused");
  assert.equal(client.bufferedAmount, 0);
});

test("a listener that closes while the queue is sent gets the rest back", async () => {
  const world = new World();
  const client = await world.client();
  client.addEventListener("refused", () => client.close());
  for (const data of ["1", "too long", "2"]) client.send(data);
  world.socket.greet("k3x-0", { limits: { bytes: 5 } });
  assert.deepEqual(world.socket.sent, ["1"]);
  assert.deepEqual(world.of("stopped")[0].unsent, ["2"]);
});

test("a queued buffer is a copy, of the part that was meant", async () => {
  const world = new World();
  const client = await world.client();
  const bytes = new Uint8Array([1, 2, 3, 4]);
  client.send(bytes.subarray(1, 3));
  client.send(bytes.buffer);
  client.send(new DataView(bytes.buffer, 3));
  bytes.fill(9);
  world.socket.greet();
  assert.deepEqual(world.socket.sent, [new Uint8Array([2, 3]), new Uint8Array([1, 2, 3, 4]).buffer, new Uint8Array([4])]);
});

test("blobs are sent, and what no socket sends is an error of the caller", async () => {
  const world = new World();
  const client = await world.client({ queueBytes: 5 });
  assert.equal(client.send(new Blob(["12345"])), "queued");
  assert.equal(client.send(new Blob(["1"])), "refused");
  for (const wrong of [undefined, null, 7, {}, [], new Map()]) assert.throws(() => client.send(wrong), TypeError);
});

test("a queue of nothing queues nothing", async () => {
  const world = new World();
  const client = await world.client({ queueMessages: 0 });
  assert.equal(client.send(""), "refused");
  world.socket.greet();
  assert.equal(client.send(""), "sent");
});
