/** `curl`, with its output as it comes. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";

/** After this long a condition does not come true any more. */
const PATIENCE = 30_000;

export const eventually = async (is, what) => {
  const end = Date.now() + PATIENCE;
  while (!(await is())) {
    assert.ok(Date.now() < end, `not so: ${what()}`);
    await new Promise((done) => setTimeout(done, 5));
  }
};

export const curl = (t, ...args) => {
  const child = spawn("curl", ["--silent", "--show-error", "--no-buffer", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill());
  const reader = { text: "", code: undefined, kill: () => child.kill("SIGKILL") };
  child.stdout.setEncoding("utf8").on("data", (chunk) => (reader.text += chunk));
  reader.ended = new Promise((done) => child.on("close", (code) => done((reader.code = code))));
  reader.until = (what) => eventually(() => reader.text.includes(what), () => `curl has ${what}: ${reader.text}`);
  return reader;
};
