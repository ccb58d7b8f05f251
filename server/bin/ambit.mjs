#!/usr/bin/env node
// Only syntax that old versions of Node read: they are told what is needed.
import { existsSync, readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const oldest = engines.node.replace(/[^\d.]/g, "");
const main = new URL("../dist/cli/main.js", import.meta.url);

if (process.versions.node.localeCompare(oldest, "en", { numeric: true }) < 0) {
  process.stderr.write(
    `ambit: Node ${oldest} or newer is needed, this is ${process.versions.node}: see https://nodejs.org\n`,
  );
  process.exitCode = 2;
} else if (existsSync(main)) {
  await import(main.href);
} else {
  process.stderr.write("ambit: it isn't built yet: run `npm run setup` in the repository\n");
  process.exitCode = 2;
}
