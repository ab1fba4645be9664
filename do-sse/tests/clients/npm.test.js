/** The scenarios with the clients from npm, each with the feeds of objects and those of a plain server. */

import { test } from "node:test";
import { clients, servers } from "./world.js";
import { play, scenarios } from "./scenarios.js";

for (const [client, world] of Object.entries(clients)) {
  for (const [server, base] of Object.entries(servers)) {
    test(`${client}, ${server}`, { concurrency: true }, async (t) => {
      const all = { ...world, base, prefix: client };
      await Promise.all(Object.keys(scenarios).map((name) => t.test(name, () => play(all, name))));
    });
  }
}
