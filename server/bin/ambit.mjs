#!/usr/bin/env node
// Only syntax that old versions of Node read: they are told what is needed.
import { existsSync, readFileSync } from "node:fs";
import module from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { isInRepository, repositoryNode, runWith } from "./repository-node.mjs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const oldest = engines.node.replace(/[^\d.]/g, "");
const bundle = new URL("../dist/bundle/ambit.js", import.meta.url);

// Half of these threads look names up, for all sessions. Of Node's four, two names whose servers don't answer would take
// that half. It counts only if it is set before the first thread starts.
process.env.UV_THREADPOOL_SIZE = process.env.UV_THREADPOOL_SIZE || "16";

/** @param {string} reason */
function refuse(reason) {
  process.stderr.write(`ambit: ${reason}\n`);
  process.exitCode = 2;
}

/** @param {string} version */
const isSupported = (version) => version.localeCompare(oldest, "en", { numeric: true }) >= 0;

if (!isSupported(process.versions.node)) {
  const node = repositoryNode(isSupported);
  const fix = isInRepository ? "`npm run setup` in the repository brings one" : "see https://nodejs.org";
  if (node === undefined)
    refuse(`Node ${oldest} or newer is needed, this is ${process.versions.node}: ${fix}`);
  else runWith(node);
} else if (existsSync(bundle)) {
  // Compiled code is kept below the user's own cache folder: in a shared one, others could plant theirs. Where it
  // can't be written, Node continues without it.
  if (!process.env.HOME && process.platform !== "win32") {
    try {
      homedir();
    } catch {
      // A user without an entry in /etc/passwd, as in a container.
      process.env.HOME = "/";
    }
  }
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE || join(cache, "ambit", "compiled"));
  await import(bundle.href);
} else {
  refuse("it isn't built yet: run `npm run setup` in the repository");
}
