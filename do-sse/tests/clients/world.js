/** Where everything is: set by `cargo xtask test --only sse-clients`. */

import { createRequire } from "node:module";
import { Feed } from "./scenarios.js";

const wanted = (name) => process.env[name] ?? raise(`${name} is not set: cargo xtask test --only sse-clients does it`);
const raise = (why) => {
  throw new Error(why);
};

// Installed in a folder of their own, where no import finds them.
const require = createRequire(`${wanted("SSE_NPM")}/package.json`);

// It says once that it is experimental, which is known.
process.removeAllListeners("warning");

/** With what of the standard each of them knows, which the scenarios hold them to. */
export const clients = {
  eventsource: {
    EventSource: require("eventsource").EventSource,
    knows: { idsWithoutData: false, idsPersist: false, idsEnd: true, idsOfAnyKind: false },
  },
  undici: {
    EventSource: require("undici").EventSource,
    knows: { idsWithoutData: true, idsPersist: true, idsEnd: false, idsOfAnyKind: false },
  },
};

const [objects, plain] = wanted("SSE_FEEDS").split(" ");
export const servers = { objects, plain };

/** A feed for a test that has no `EventSource`. */
export const feedOf = (base, name) => new Feed({ base }, name);

/** Where tests may write. */
export const scratch = process.env.SSE_SCRATCH;

/** The program. */
export const nginx = process.env.SSE_NGINX;
