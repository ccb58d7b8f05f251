import { randomUUID } from "node:crypto";
import { halvesOf, reachedOf, startHolder } from "@ambit/attacks/inside";
import { NotProven } from "@ambit/backend-kit";
import { pauseFor } from "../platform/retries.js";
import { shellLine } from "../platform/shell-line.js";
import type { CanaryAttempts, CanaryBench, CanaryTrial } from "./bench.js";
import { lookAsProcess, lookFromPlatform } from "./look.js";

const imageFix = "use a snapshot or image whose user is root and that has Node.js 18 or newer";
const platformFix = "check what kind of sandbox this is: Ambit expects a separate machine for each";

/** Milliseconds that a platform may take to start a process after it has accepted its command. */
const startsWithinMs = 5_000;

/** A text of other processes. */
const ofOthers = (text: string): CanaryAttempts => ({
  arguments: { try: "arguments", halves: halvesOf(text) },
  environment: { try: "environment", halves: halvesOf(text) },
});

/** Whether the decoy is seen in its own sandbox. A busy platform may start it after a search began. */
async function isSeen(bench: CanaryBench, attempts: CanaryAttempts): Promise<boolean> {
  const end = performance.now() + startsWithinMs;
  for (;;) {
    if (reachedOf(await lookFromPlatform(bench, bench.open.machine, attempts)) !== "") return true;
    if (performance.now() > end) return false;
    await pauseFor(100, bench.signal);
  }
}

export const isolationTrials: readonly CanaryTrial[] = [
  {
    shows: ["environment.named-only"],
    async run(bench) {
      const attempts: CanaryAttempts = {
        variable: { try: "ownEnvironment", halves: halvesOf(bench.decoys.variable) },
        names: { try: "names" },
      };
      const bare = await lookFromPlatform(bench, bench.limited.machine, attempts);
      if ((bare.variable ?? null) === null) {
        throw new NotProven(
          "a variable of the sandbox isn't in the environment of the platform's own processes",
          imageFix,
        );
      }
      const { variable = null, names: list } = await lookAsProcess(bench, attempts, { AMBIT_NAMED: "1" });
      const names = (list ?? "").split(",");
      const platforms = names.filter((name) => name.startsWith("DAYTONA_"));
      if (variable !== null || platforms.length > 0 || !names.includes("AMBIT_NAMED")) {
        throw new NotProven(`a process was given ${names.join(", ")}`, imageFix);
      }
      return {
        "environment.named-only":
          "a variable of the sandbox was in the environment of the platform's own processes, and not in a process of the run",
      };
    },
  },
  {
    shows: ["environment.per-tool"],
    async run(bench) {
      const { facts } = bench.sandbox;
      if (!facts.ownUsers) {
        throw new NotProven(`processes share a user (${facts.whyShared ?? "no reason given"})`, imageFix);
      }
      const text = randomUUID();
      const own: CanaryAttempts = { own: { try: "ownEnvironment", halves: halvesOf(text) } };
      if (reachedOf(await lookAsProcess(bench, own, { TOOL_VALUE: text })) === "") {
        throw new NotProven("a process doesn't see its own environment in /proc", imageFix);
      }
      const { sandbox, account, signal } = bench;
      const holder = await startHolder(
        sandbox,
        { probe: { node: account.config.bridge.node }, signal },
        "tool",
      );
      try {
        const seen = reachedOf(await lookAsProcess(bench, holder.find));
        if (seen !== "") throw new NotProven(`a process reads another's ${seen}`, imageFix);
      } finally {
        await holder.process.kill();
      }
      return {
        "environment.per-tool":
          "a value was found by its own process in /proc; by no other while it ran, in its scratch neither",
      };
    },
  },
  {
    shows: ["process.contained"],
    async run(bench) {
      const { open, limited, decoys, account } = bench;
      const session = `ambit-${randomUUID()}`;
      await open.machine.startSession(session);
      const sleep = [account.config.bridge.node, "-e", "setTimeout(() => {}, 60000)", decoys.process];
      await open.machine.startInSession(session, shellLine(sleep));
      const attempts = ofOthers(decoys.process);
      const isVisible = await isSeen(bench, attempts);
      const far = [
        await lookAsProcess(bench, attempts),
        await lookFromPlatform(bench, limited.machine, attempts),
      ];
      await open.machine.endSession(session);
      if (!isVisible) {
        throw new NotProven("a process isn't seen in its own sandbox either", imageFix);
      }
      if (far.some((seen) => reachedOf(seen) !== "")) {
        throw new NotProven("a process of one sandbox was seen in another", platformFix);
      }
      return { "process.contained": "a process was seen in its own sandbox, and not in another" };
    },
  },
];
