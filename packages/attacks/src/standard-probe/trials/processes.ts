import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Process, Sandbox } from "@ambit/core/plugin";
import { type Attempts, reachedOf } from "../../inside/attempts.js";
import { startHolder } from "../../inside/holder.js";
import { halvesOf, lookOutside, pathFor, tryInside } from "../../inside/look.js";
import { expectConclusive, expectThat, NotProven } from "../../probe/trial.js";
import type { StandardBench, StandardTrial } from "../bench.js";

type Role = "tool" | "agent";

/** A process that others look for. */
interface Decoy {
  readonly find: Attempts;
  readonly process: Process;
  hasEnded(): boolean;
}

async function startDecoy(bench: StandardBench, sandbox: Sandbox, role: Role): Promise<Decoy> {
  const { process: started, find } = await startHolder(sandbox, bench, role);
  let hasEnded = false;
  void started.exit.then(() => {
    hasEnded = true;
  });
  const named = Object.entries(find).map(([way, attempt]) => [`${way} of the ${role}'s`, attempt] as const);
  return { find: Object.fromEntries(named), process: started, hasEnded: () => hasEnded };
}

/** What a process finds of others, and of itself: its own environment and scratch, which is the control. */
async function search(bench: StandardBench, sandbox: Sandbox, role: Role, others: Attempts) {
  const text = randomUUID();
  const own: Attempts = {
    ownEnvironment: { try: "ownEnvironment", text },
    ownScratch: { try: "ownScratch", text },
  };
  const command = { role, env: { OWN: text } };
  const { ownEnvironment, ownScratch, ...found } = await tryInside(
    sandbox,
    bench,
    { ...others, ...own },
    command,
  );
  expectConclusive(
    ownEnvironment !== null && ownScratch !== null,
    "a process doesn't see its own environment in /proc, or its own scratch, so nothing is shown",
  );
  return found;
}

/** A tool and an agent run in one sandbox. Others look for them: there, and in another sandbox as the same users. */
export const processTrial: StandardTrial = {
  shows: ["process.contained", "environment.per-tool"],
  async run(bench) {
    const isClaimed = (claim: (typeof processTrial.shows)[number]) => bench.probe.claims.includes(claim);
    const closed = await bench.closed();
    // On other systems than Linux, the sandboxes' kernel isn't this host's.
    const words = await readFile("/proc/self/cmdline", "utf8").catch(() => undefined);
    const runner: Attempts =
      words === undefined ? {} : { runner: { try: "arguments", halves: halvesOf(words) } };
    const decoys = await Promise.all([startDecoy(bench, closed, "tool"), startDecoy(bench, closed, "agent")]);
    try {
      const [tool] = decoys;
      const all = Object.assign({}, ...decoys.map(({ find }) => find), runner);
      const control = words === undefined ? undefined : await lookOutside(bench, runner);
      expectConclusive(control?.runner !== null, "a plain process doesn't see the runner's process either");
      const [near, agent, ...far] = await Promise.all([
        search(bench, closed, "tool", { ...tool.find, ...runner }),
        search(bench, closed, "agent", { ...tool.find, ...runner }),
        // Sandboxes may use the same users: agents have the same one, which sees its own processes everywhere.
        ...(isClaimed("process.contained")
          ? (["tool", "agent"] as const).map(async (role) => search(bench, await bench.empty(), role, all))
          : []),
      ]);
      expectConclusive(
        !decoys.some((decoy) => decoy.hasEnded()),
        "a process that was looked for ended too early",
      );
      const { runner: byTool = null, ...beside } = near ?? {};
      const { runner: byAgent = null, ...besideAgent } = agent ?? {};
      const outside = [...far, { byTool, byAgent }].some((seen) => reachedOf(seen) !== "");
      const shared = reachedOf(beside) || reachedOf(besideAgent);
      const why = closed.facts?.whyShared;
      return {
        "process.contained": outside
          ? new NotProven("a process of another sandbox, or of this host, is seen")
          : "processes of a tool and of an agent were seen in no other sandbox, by the same users, and the runner's in none",
        "environment.per-tool":
          shared === "" && why === undefined
            ? "a process read its own environment in /proc; neither a tool nor the agent beside it found it, its arguments or its scratch"
            : new NotProven(
                `a process beside it sees ${shared || "it"}: ${why ?? "users aren't kept apart"}`,
                bench.probe.perToolFix,
              ),
      };
    } finally {
      await Promise.all(decoys.map((decoy) => decoy.process.kill()));
    }
  },
};

export const namedTrial: StandardTrial = {
  shows: ["environment.named-only"],
  async run(bench) {
    const { variable, secret } = bench.decoys;
    const attempts: Attempts = { names: { try: "names" } };
    const control = await lookOutside(bench, attempts);
    expectConclusive(
      control.names?.includes(variable) === true,
      "a plain process doesn't inherit the decoy either",
    );
    const closed = await bench.closed();
    const { names: list, all } = await tryInside(
      closed,
      bench,
      { ...attempts, all: { try: "environments" } },
      { env: { AMBIT_NAMED: "1" } },
    );
    const names = (list ?? "").split(",");
    expectThat(names.includes("AMBIT_NAMED"), "a variable that was named isn't there");
    const given = new Set([
      "AMBIT_NAMED",
      "HOME",
      "TMPDIR",
      ...Object.keys(pathFor(bench.probe, closed)),
      ...(bench.probe.variables ?? []),
    ]);
    const others = names.filter((name) => !given.has(name));
    expectThat(others.length === 0, `variables that the process wasn't given: ${others.join(", ")}`);
    expectThat(!all?.includes(secret), "a variable of the runner is in the environment of a process inside");
    return {
      "environment.named-only":
        "a variable of the runner was inherited by a plain process; inside were only those named",
    };
  },
};
