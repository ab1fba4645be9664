/** What is published: small, without dependencies, and of the same version as the crates. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json"));

test("without its comments the client is at most 4 KiB as it is sent, compressed", (t) => {
  const code = read("client.js")
    .replace(/\/\*\*[\s\S]*?\*\//g, "")
    .split("\n")
    .map((line) => line.replace(/(^|\s)\/\/ .*$/, "").trimEnd())
    .filter((line) => line !== "")
    .join("\n");
  const bytes = gzipSync(code, { level: 9 }).length;
  t.diagnostic(`${bytes} bytes`);
  assert.ok(bytes <= 4_096, `${bytes} bytes`);
});

test("there are no dependencies, neither named nor imported", () => {
  for (const kind of ["dependencies", "peerDependencies", "optionalDependencies"]) assert.equal(manifest[kind], undefined);
  assert.doesNotMatch(read("client.js"), /^\s*import\b|\brequire\(|\bimport\(/m);
});

test("the version is that of the crates, and every file is there", () => {
  const [, version] = /^\[workspace\.package\]\nversion = "([^"]+)"/m.exec(read("../../Cargo.toml"));
  assert.equal(manifest.version, version);
  for (const file of manifest.files) assert.ok(existsSync(new URL(`../${file}`, import.meta.url)), file);
});
