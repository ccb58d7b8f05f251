import { randomUUID } from "node:crypto";
import type { Process, Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import { Inconclusive } from "../probe/trial.js";
import { waitForLine } from "../programs/run-program.js";
import type { Attempts } from "./attempts.js";
import { halvesOf, type Looking, nodeWords, searchPathOf } from "./look.js";

/** A process that holds a random text in its environment, in its arguments, and wherever it may write scratch. */
export interface Holder {
  readonly text: string;
  /** What finds the text, by where. */
  readonly find: Attempts<"arguments" | "environment" | "scratch" | "holding">;
  readonly process: Process;
}

/** Milliseconds; longer than a probe may take. It ends by itself where a sandbox doesn't end it. */
const lifeMs = 300_000;

const program = `
const { TMPDIR = "/tmp", HOME = "/tmp", HELD } = process.env;
for (const folder of ["/tmp", "/dev/shm", TMPDIR, HOME])
  try { require("node:fs").writeFileSync(folder + "/ambit-decoy-" + process.pid, HELD); } catch {}
console.log(JSON.stringify([TMPDIR, HOME]));
setTimeout(() => {}, ${lifeMs});`;

/** @throws Inconclusive if it doesn't start */
export async function startHolder(
  sandbox: Sandbox,
  { probe, signal }: Pick<Looking, "probe" | "signal">,
  role: "tool" | "agent",
): Promise<Holder> {
  const text = `decoy-${randomUUID()}`;
  const started = await sandbox.spawn({
    argv: [...nodeWords(probe.node), "-e", program, text],
    env: { PATH: searchPathOf(sandbox), HELD: text },
    signal,
    role,
  });
  const line = await waitForLine(started.stdout, "[");
  if (line === undefined) throw new Inconclusive("a process that holds a text ended at once");
  // Others can't list the folder that its own are in, but could guess their names.
  const folders = z.array(z.string()).parse(JSON.parse(line));
  const halves = halvesOf(text);
  const find = {
    arguments: { try: "arguments", halves },
    environment: { try: "environment", halves },
    scratch: { try: "scratch", halves },
    "own folders": { try: "holding", folders, halves },
  } as const;
  return { text, find, process: started };
}
