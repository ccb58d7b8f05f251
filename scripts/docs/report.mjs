import { spawnSync } from "node:child_process";
import { root } from "../setup.mjs";

/**
 * The JSON output of one of this repository's commands.
 *
 * @param {readonly string[]} args of Node.js, from the repository's root
 * @throws Error when its exit code isn't 0
 */
export function reportOf(args) {
  const { stdout, status } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`"${args.join(" ")}" exited ${status}: not everything is in order`);
  return JSON.parse(stdout);
}
