/** What shells read feeds with: `curl`, as fast as it can, and too slow. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { curl } from "./curl.js";
import { feedOf, servers } from "./world.js";

const cases = (t, server, base) => {
  const one = t.test(`${server}: each event is there at once, and the end is an end`, async (t) => {
    const feed = feedOf(base, "curl");
    await feed.make({ history: 10 });
    const reader = curl(t, "--include", `${feed.url}/events?id=sh`);
    await reader.until('data: {"connection":"sh"}\n\n');
    const head = reader.text.split("\r\n\r\n")[0].toLowerCase();
    for (const line of ["200 ok", "content-type: text/event-stream", "x-accel-buffering: no", "no-store"]) {
      assert.ok(head.includes(line), head);
    }
    for (const data of ["1", "2", "3"]) {
      await feed.publish({ event: "tick", data });
      await reader.until(`\ndata: ${data}\n\n`);
    }
    assert.match(reader.text, /\n\nevent: tick\nid: [0-9a-z]+-3\ndata: 3\n\n$/);
    await feed.do({ close: {} });
    assert.equal(await reader.ended, 0);
    const rest = curl(t, "--header", `Last-Event-ID: ${/id: (\S+)-3/.exec(reader.text)[1]}-1`, `${feed.url}/events`);
    await rest.until("data: 3\n\n");
    assert.ok(!rest.text.includes("data: 1\n") && rest.text.includes("data: 2\n"), rest.text);
  });
  const two = t.test(`${server}: HEAD is answered, and opens nothing`, async (t) => {
    const feed = feedOf(base, "curl-head");
    await feed.make({});
    const reader = curl(t, "--head", `${feed.url}/events`);
    assert.equal(await reader.ended, 0);
    assert.match(reader.text, /^HTTP\/1.1 200 /);
    assert.equal((await feed.do()).opened, 0);
  });
  const three = t.test(`${server}: who is told to stop or to come later has the whole answer`, async (t) => {
    const feed = feedOf(base, "curl-away");
    await feed.make({ max_connections: 0, retry: 1_000 });
    const reader = curl(t, `${feed.url}/events`);
    assert.equal(await reader.ended, 0);
    assert.match(reader.text, /^retry: 1[0-5]\d\d\n\n$/);
    await feed.do({ answer: "stop" });
    const stopped = curl(t, "--include", `${feed.url}/events`);
    assert.equal(await stopped.ended, 0);
    assert.match(stopped.text, /^HTTP\/1.1 204 /);
  });
  const four = t.test(`${server}: who is too slow is cut off, by the bound or by the time, and others hear everything`, async (t) => {
    // More than the system takes by itself.
    const data = "x".repeat(64 * 1_024);
    for (const [settings, cause] of [
      [{ max_bytes: 256 * 1_024 }, "full"],
      [{ max_bytes: 1_024 ** 3, stall: 2_000, heartbeat: 500 }, "stalled"],
    ]) {
      const feed = feedOf(base, `curl-${cause}`);
      await feed.make(settings);
      const slow = curl(t, "--limit-rate", "1k", `${feed.url}/events`);
      const fast = curl(t, "--output", "/dev/null", `${feed.url}/events`);
      await feed.stands("both are in", ({ connections }) => connections === 2);
      const enough = ({ connections }) => connections === 1;
      let count = 0;
      while (!enough(await feed.do({ broadcast: { data } }))) {
        assert.ok((count += 1) < 5_000, "nobody was cut off");
      }
      const state = await feed.do();
      assert.deepEqual([state[cause], state.gone, slow.code, fast.code], [1, 0, undefined, undefined], cause);
    }
  });
  return [one, two, three, four];
};

test("curl", { concurrency: true }, (t) =>
  Promise.all(Object.entries(servers).flatMap(([server, base]) => cases(t, server, base))),
);
