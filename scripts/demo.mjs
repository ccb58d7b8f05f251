/** Runs the main job: one turn of the embedded demo agent. Offline, without keys. */
import { spawnSync } from "node:child_process";
import { root, setUp } from "./setup.mjs";

/** @param {readonly string[]} args */
function ambit(args) {
  return spawnSync(process.execPath, ["server/dist/cli/main.js", ...args], { cwd: root, stdio: "inherit" })
    .status;
}

process.exitCode = setUp() ? (ambit(["run", "examples/demo.json"]) ?? 1) : 1;
