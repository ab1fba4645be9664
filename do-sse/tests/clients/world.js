/** Where everything is: set by `cargo xtask test --only sse-clients`. */

import { createRequire } from "node:module";

const wanted = (name) => process.env[name] ?? raise(`${name} is not set: cargo xtask test --only sse-clients does it`);
const raise = (why) => {
  throw new Error(why);
};

// Installed in a folder of their own, where no import finds them.
const require = createRequire(`${wanted("SSE_NPM")}/package.json`);

// It says once that it is experimental, which is known.
process.removeAllListeners("warning");

export const clients = {
  eventsource: { EventSource: require("eventsource").EventSource, knows: { idsWithoutData: false } },
  undici: { EventSource: require("undici").EventSource, knows: { idsWithoutData: true } },
};

const [objects, plain] = wanted("SSE_FEEDS").split(" ");
export const servers = { objects, plain };
