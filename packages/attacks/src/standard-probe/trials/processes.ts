import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Command, Sandbox } from "@ambit/core/plugin";
import { expectConclusive, expectThat, NotProven } from "../../probe/trial.js";
import type { Bench, Trial } from "../bench.js";
import { type Attempts, lookInside, lookOutside, reachedOf, searchPathOf } from "../look.js";

/** In milliseconds; longer than a probe may take. */
const decoyLifeMs = 300_000;

/** Looks for a process of one sandbox while it runs. */
async function whileRunning<Result>(
  { probe, signal }: Bench,
  sandbox: Sandbox,
  look: (find: Attempts, text: string) => Promise<Result>,
  command: Pick<Command, "role"> = {},
): Promise<Result> {
  const text = `decoy-${randomUUID()}`;
  const decoy = await sandbox.spawn({
    // It ends by itself where a sandbox doesn't end it.
    argv: [probe.node, "-e", `console.log('up');setTimeout(() => {}, ${decoyLifeMs})`, text],
    env: { PATH: searchPathOf(sandbox), DECOY: text },
    signal,
    ...command,
  });
  let hasEnded = false;
  void decoy.exit.then(() => {
    hasEnded = true;
  });
  try {
    await decoy.stdout.getReader().read();
    const find: Attempts = {
      arguments: { try: "arguments", halves: halvesOf(text) },
      environment: { try: "environment", halves: halvesOf(text) },
    };
    const result = await look(find, text);
    expectConclusive(!hasEnded, "the process that was looked for ended too early");
    return result;
  } finally {
    await decoy.kill();
  }
}

const ownEnvironment = (text: string): Attempts => ({ own: { try: "ownEnvironment", text } });
const halvesOf = (text: string) => [text.slice(0, text.length / 2), text.slice(text.length / 2)];

export const processTrial: Trial = {
  shows: ["process.contained"],
  async run(bench) {
    const [closed, empty] = await Promise.all([bench.closed(), bench.empty()]);
    // On other systems than Linux, the sandboxes' kernel isn't this host's.
    const words = await readFile("/proc/self/cmdline", "utf8").catch(() => undefined);
    const runner: Attempts =
      words === undefined ? {} : { runner: { try: "arguments", halves: halvesOf(words) } };
    const control = words === undefined ? undefined : await lookOutside(bench, runner);
    expectConclusive(control?.runner !== null, "a plain process doesn't see the runner's process either");
    // Sandboxes may use the same users: agents have the same one, which sees its own processes everywhere.
    for (const role of [undefined, "agent"] as const) {
      await whileRunning(
        bench,
        closed,
        async (find, text) => {
          const own = await lookInside(closed, bench, ownEnvironment(text), { role, env: { OWN: text } });
          expectConclusive(
            own.own !== null,
            "a process doesn't see its own environment in /proc, so nothing is shown",
          );
          const seen = [
            await lookInside(empty, bench, { ...find, ...runner }, { role }),
            await lookInside(closed, bench, runner, { role }),
          ];
          expectThat(
            seen.every((one) => reachedOf(one) === ""),
            "a process of another sandbox, or of this host, is seen",
          );
        },
        { role },
      );
    }
    return {
      "process.contained":
        "processes of a tool and of an agent were seen in no other sandbox, by the same users, and the runner's in none",
    };
  },
};

export const perToolTrial: Trial = {
  shows: ["environment.per-tool"],
  async run(bench) {
    const sandbox = await bench.closed();
    return whileRunning(bench, sandbox, async (find, text) => {
      const [own, near, agent] = await Promise.all([
        lookInside(sandbox, bench, ownEnvironment(text), { env: { OWN: text } }),
        lookInside(sandbox, bench, find),
        lookInside(sandbox, bench, find, { role: "agent" }),
      ]);
      expectConclusive(
        own.own !== null,
        "a process doesn't see its own environment in /proc, so nothing is shown",
      );
      const seen = reachedOf(near) || reachedOf(agent);
      const why = sandbox.facts?.whyShared;
      if (seen !== "" || why !== undefined) {
        const reason = `a process beside it sees ${seen || "it"}: ${why ?? "users aren't kept apart"}`;
        throw new NotProven(reason, bench.probe.perToolFix);
      }
      return {
        "environment.per-tool":
          "a process read its own environment in /proc; neither a tool nor the agent beside it found it, or its arguments",
      };
    });
  },
};

export const namedTrial: Trial = {
  shows: ["environment.named-only"],
  async run(bench) {
    const { variable } = bench.decoys;
    const attempts: Attempts = { names: { try: "names" } };
    const control = await lookOutside(bench, attempts);
    expectConclusive(
      control.names?.includes(variable) === true,
      "a plain process doesn't inherit the decoy either",
    );
    const seen = await lookInside(await bench.closed(), bench, attempts, { env: { AMBIT_NAMED: "1" } });
    const names = (seen.names ?? "").split(",");
    expectThat(names.includes("AMBIT_NAMED"), "a variable that was named isn't there");
    const given = new Set([...expected, ...(bench.probe.variables ?? [])]);
    const others = names.filter((name) => !given.has(name));
    expectThat(others.length === 0, `variables that the process wasn't given: ${others.join(", ")}`);
    return {
      "environment.named-only":
        "a variable of the runner was inherited by a plain process; inside were only those named",
    };
  },
};
const expected = ["AMBIT_NAMED", "HOME", "PATH", "TMPDIR"];
