/**
 * The scenarios again behind nginx with what it does by itself: it holds back answers, speaks HTTP/1.0 to the server, and
 * gives up on an answer that pauses. Only the last is made shorter than its 60 seconds, so that a test can wait for it.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { curl, eventually } from "./curl.js";
import { clients, feedOf, nginx, scratch, servers } from "./world.js";
import { play, scenarios } from "./scenarios.js";

const ways = {
  // `Connection: close` and HTTP/1.0: what nginx does when it is told nothing.
  plainly: "",
  // What its manual says for connections to the server that are used again.
  kept: 'proxy_http_version 1.1; proxy_set_header Connection "";',
};

/** What an answer may pause. */
const IMPATIENT = "proxy_read_timeout 3s;";

/** Nothing of the server's wish to not be held back. */
const DEAF = "proxy_ignore_headers X-Accel-Buffering;";

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** Addresses in front of the servers, by what nginx is told. */
const fronts = [];

const front = async (name, server, told) => {
  const port = await freePort();
  fronts.push({ name, port, server, told });
  return `http://127.0.0.1:${port}`;
};

const config = (folder) => `
daemon off;
${process.getuid() === 0 ? "user root;" : ""}
worker_processes 1;
pid ${folder}/pid;
error_log ${folder}/errors;
events { worker_connections 1000; }
http {
  access_log off;
  gzip on;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((of) => `${of}_temp_path ${folder}/${of};`).join("\n  ")}
  upstream objects { server ${new URL(servers.objects).host}; keepalive 32; }
  upstream plain { server ${new URL(servers.plain).host}; keepalive 32; }
  ${fronts
    .map(
      ({ port, server, told }) =>
        `server { listen 127.0.0.1:${port}; client_max_body_size 8m; location / { proxy_pass http://${server}; ${told} } }`,
    )
    .join("\n  ")}
}
`;

const accepts = (port) =>
  new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => done(true)).on("error", () => done(false));
    socket.on("connect", () => socket.destroy());
  });

const bases = {};
for (const [way, told] of Object.entries(ways)) {
  for (const server of Object.keys(servers)) bases[`${server}, ${way}`] = await front(`${server}-${way}`, server, told);
}
const impatient = {};
const deaf = {};
for (const server of Object.keys(servers)) {
  impatient[server] = await front(`${server}-impatient`, server, IMPATIENT);
  deaf[server] = await front(`${server}-deaf`, server, DEAF);
}

let proxy;
const folder = mkdtempSync(`${scratch}/nginx-`);

before(async () => {
  writeFileSync(`${folder}/conf`, config(folder));
  proxy = spawn(nginx, ["-p", folder, "-e", `${folder}/errors`, "-c", `${folder}/conf`], { stdio: "inherit" });
  proxy.on("exit", (code) => (proxy.code = code));
  await eventually(
    () => accepts(fronts.at(-1).port),
    () => `nginx accepts; it ended with ${proxy.code}: ${readFileSync(`${folder}/errors`, "utf8")}`,
  );
});

after(() => {
  proxy?.kill("SIGTERM");
  rmSync(folder, { recursive: true });
});

test("clients from npm", { concurrency: true }, async (t) => {
  // One way after the other: together they would keep a small machine from being in time for anything.
  for (const [how, base] of Object.entries(bases)) {
    const played = Object.entries(clients).flatMap(([client, world]) =>
      Object.keys(scenarios).map((name) =>
        t.test(`${client}, ${how}: ${name}`, () => play({ ...world, base, prefix: `${client}-${how.replace(", ", "-")}` }, name)),
      ),
    );
    await Promise.all(played);
  }
});

test("what nginx does to a feed", { concurrency: true }, (t) => {
  const cases = Object.keys(servers).flatMap((server) => [
    t.test(`${server}: events are not held back, because the server says so`, async (t) => {
      const feed = feedOf(deaf[server], "deaf");
      await feed.make({ heartbeat: 100 });
      const heard = curl(t, `${bases[`${server}, plainly`]}/deaf/events`);
      const held = curl(t, `${feed.url}/events`);
      await heard.until("event: ready");
      await feed.stands("both are in", ({ connections }) => connections === 2);
      const { beats } = await feed.do({ broadcast: { data: "now" } });
      await heard.until("data: now\n\n");
      await feed.stands("time passes", (state) => state.beats > beats + 6);
      assert.equal(held.text, "", "otherwise nginx would have waited for more");
      await feed.do({ close: {} });
      await held.until("data: now\n\n");
    }),
    t.test(`${server}: heartbeats keep what nginx would give up`, async (t) => {
      const [quiet, beating] = ["quiet", "beating"].map((name) => feedOf(impatient[server], name));
      await quiet.make({ heartbeat: 5_000 });
      await beating.make({ heartbeat: 500 });
      const given_up = curl(t, `${quiet.url}/events`);
      const kept = curl(t, `${beating.url}/events`);
      await kept.until("event: ready");
      await given_up.until("event: ready");
      await given_up.ended;
      await quiet.stands("the server notices", ({ gone }) => gone === 1);
      await beating.stands("longer than that", ({ beats }) => beats >= 10);
      assert.equal(kept.code, undefined);
      await beating.do({ broadcast: { data: "still here" } });
      await kept.until("data: still here");
    }),
    t.test(`${server}: who leaves is noticed, at the latest by the heartbeat`, async (t) => {
      const feed = feedOf(bases[`${server}, kept`], "leaves");
      await feed.make({ heartbeat: 200 });
      const reader = curl(t, `${feed.url}/events`);
      await reader.until("event: ready");
      reader.kill();
      await feed.stands("it is gone", ({ connections, gone }) => connections === 0 && gone === 1);
    }),
    t.test(`${server}: who is too slow is cut off`, async (t) => {
      const feed = feedOf(bases[`${server}, plainly`], "slow");
      await feed.make({ max_bytes: 256 * 1_024 });
      const slow = curl(t, "--limit-rate", "1k", `${feed.url}/events`);
      await slow.until("event: ready");
      const data = "x".repeat(64 * 1_024);
      let count = 0;
      while ((await feed.do({ broadcast: { data } })).connections === 1) assert.ok((count += 1) < 5_000, "it was not");
      assert.equal((await feed.do()).full, 1);
    }),
  ]);
  return Promise.all(cases);
});
