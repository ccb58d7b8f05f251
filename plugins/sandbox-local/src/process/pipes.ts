import type { ChildProcess } from "node:child_process";
import { type Process, SandboxFailed } from "@ambit/core/plugin";
import { readableOf, writableOf } from "./streams.js";

/** A started program's three pipes as streams. */
export function pipesOf({
  stdin,
  stdout,
  stderr,
}: ChildProcess): Pick<Process, "stdin" | "stdout" | "stderr"> {
  if (stdin === null || stdout === null || stderr === null) {
    throw new SandboxFailed("A process was started without its three pipes");
  }
  return { stdin: writableOf(stdin), stdout: readableOf(stdout), stderr: readableOf(stderr) };
}
