import { randomUUID } from "node:crypto";
import { NotProven } from "@ambit/backend-kit";
import { pauseFor } from "../platform/retries.js";
import { shellLine } from "../platform/shell-line.js";
import type { Bench, Trial } from "./bench.js";
import { type Search, searchAsProcess, searchPlatform } from "./programs.js";

const imageFix = "use a snapshot or image whose user is root and that has Node.js 18 or newer";
const platformFix = "check what kind of sandbox this is: Ambit expects a separate machine for each";

/** Milliseconds that a platform may take to start a process after it has accepted its command. */
const startsWithinMs = 5_000;

/** Whether the decoy is seen in its own sandbox. A busy platform may start it after a search began. */
async function isSeen(bench: Bench, search: Search): Promise<boolean> {
  const end = performance.now() + startsWithinMs;
  for (;;) {
    const { found } = await searchPlatform(bench, bench.open.machine, search);
    if ((found.process ?? []).length > 0) return true;
    if (performance.now() > end) return false;
    await pauseFor(100, bench.signal);
  }
}

export const isolationTrials: readonly Trial[] = [
  {
    shows: ["environment.named-only"],
    async run(bench) {
      const search = { values: { variable: bench.decoys.variable } };
      const bare = await searchPlatform(bench, bench.limited.machine, search);
      if (!bare.found.variable?.includes("environment")) {
        throw new NotProven(
          "a variable of the sandbox isn't in the environment of the platform's own processes",
          imageFix,
        );
      }
      const seen = await searchAsProcess(bench, search, { AMBIT_NAMED: "1" });
      const platforms = seen.names.filter((name) => name.startsWith("DAYTONA_"));
      if (
        seen.found.variable?.includes("environment") ||
        platforms.length > 0 ||
        !seen.names.includes("AMBIT_NAMED")
      ) {
        throw new NotProven(`a process was given ${seen.names.join(", ")}`, imageFix);
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
      const search = { values: { tool: text } };
      // It finds itself, so the search works.
      const own = await searchAsProcess(bench, search, { TOOL_VALUE: text });
      if (!own.found.tool?.includes(`/proc/${own.pid}/environ`)) {
        throw new NotProven("a process doesn't see its own environment in /proc", imageFix);
      }
      const sleep = [bench.account.config.bridge.node, "-e", "setTimeout(() => {}, 60000)", text] as const;
      const other = await bench.sandbox.spawn({
        argv: sleep,
        env: { PATH: bench.sandbox.facts.searchPath, TOOL_VALUE: text },
        role: "tool",
        signal: bench.signal,
      });
      try {
        const seen = await searchAsProcess(bench, { ...search, folders: ["/tmp", "/home"] });
        const places = seen.found.tool ?? [];
        if (places.length > 0)
          throw new NotProven(`a process reads another's ${places.join(", ")}`, imageFix);
      } finally {
        await other.kill();
      }
      return {
        "environment.per-tool": "a value was found by its own process in /proc, and by no other while it ran",
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
      const search = { values: { process: decoys.process } };
      const isVisible = await isSeen(bench, search);
      const far = [
        await searchAsProcess(bench, search),
        await searchPlatform(bench, limited.machine, search),
      ];
      await open.machine.endSession(session);
      if (!isVisible) {
        throw new NotProven("a process isn't seen in its own sandbox either", imageFix);
      }
      if (far.some(({ found }) => (found.process ?? []).length > 0)) {
        throw new NotProven("a process of one sandbox was seen in another", platformFix);
      }
      return { "process.contained": "a process was seen in its own sandbox, and not in another" };
    },
  },
];
