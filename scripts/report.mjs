import { spawnSync } from "node:child_process";
import { root } from "./setup.mjs";

/**
 * What a command of ours prints as JSON.
 *
 * @param {readonly string[]} args of Node.js, from the repository's root
 * @throws Error when it exits otherwise than with 0
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
