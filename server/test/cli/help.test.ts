import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { exitCodes } from "../../src/cli/exit-codes.js";
import { help } from "../../src/cli/help.js";
import { addressOf } from "../../src/cli/server-client.js";
import { environmentSchema, takeEnvironment } from "../../src/configuration/environment.js";

const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
/** The first columns of the README's tables. */
const rows = readme.split("\n").flatMap((line) => (line.startsWith("|") ? [line.split("|")[1] ?? ""] : []));

it.each(Object.entries(exitCodes))("the help and the README say what the exit code of '%s' is", (_, code) => {
  expect(help).toMatch(new RegExp(`^  .*\\b${code}\\b`, "m"));
  expect(rows.some((row) => row.match(/\d+/g)?.includes(String(code)))).toBe(true);
});

it.each(Object.keys(environmentSchema.shape))("the help and the README name the variable %s", (name) => {
  expect(help).toMatch(new RegExp(`^  .*\\b${name}\\b`, "m"));
  expect(rows.some((row) => row.includes(`\`${name}\``))).toBe(true);
});

it.each([
  [{}, {}, "http://127.0.0.1:8765"],
  [{}, { AMBIT_HOST: "::1", AMBIT_PORT: "80" }, "http://[::1]:80"],
  [{}, { AMBIT_HOST: "a", AMBIT_ADDRESS: "http://b:1/" }, "http://b:1"],
  [{ url: "http://c" }, { AMBIT_ADDRESS: "http://b:1" }, "http://c"],
])("with %o and %o, the server is at %s", (options, variables, address) => {
  expect(addressOf(options, takeEnvironment({ ...variables }))).toBe(address);
});
