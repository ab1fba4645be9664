/** The scenarios with the clients from npm, each with the feeds of objects and those of a plain server, all side by side. */

import { test } from "node:test";
import { clients, servers } from "./world.js";
import { play, scenarios } from "./scenarios.js";

test("clients from npm", { concurrency: true }, (t) => {
  const played = Object.entries(clients).flatMap(([client, world]) =>
    Object.entries(servers).flatMap(([server, base]) =>
      Object.keys(scenarios).map((name) =>
        t.test(`${client}, ${server}: ${name}`, () => play({ ...world, base, prefix: client }, name)),
      ),
    ),
  );
  return Promise.all(played);
});
