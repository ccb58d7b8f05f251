import {
  type Capability,
  type Command,
  type ResourceLimits,
  type Sandbox,
  SandboxFailed,
} from "@ambit/core/plugin";
import type { Attempts, Reached } from "../../inside/attempts.js";
import { Killed, searchPathOf, tryInside } from "../../inside/look.js";
import { runToEnd } from "../../probe/bench.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { StandardBench, StandardTrial } from "../bench.js";

const cpus = 0.1;
/** A shell needs less itself than Node.js. */
const sizes = {
  shell: { memoryMb: 24, processes: 40, diskMb: 8 },
  node: { memoryMb: 128, processes: 40, diskMb: 16 },
} as const;
type Sizes = (typeof sizes)["shell" | "node"];

/** How a process uses up a limit. */
interface Strain {
  readonly attempt: Attempts[string];
  /** The same for a shell: prints what was reached. It starts in a tenth of the time. */
  readonly script: string;
  /** What the script prints without a limit. */
  readonly whole: string;
  readonly role?: Command["role"];
}

const mib = (count: number) => count * 1024 * 1024;

/** Each in a separate sandbox, since a limit may end the whole sandbox. */
export const limitTrials: readonly StandardTrial[] = [
  limitTrial("resources.memory", "memoryMb", ({ memoryMb }) => ({
    attempt: { try: "memory", mib: memoryMb * 2 },
    // `tail` keeps all of it in memory before it prints the first byte.
    script: `head -c ${mib(memoryMb * 2)} /dev/zero | tail -c ${mib(memoryMb * 2)} | wc -c`,
    whole: String(mib(memoryMb * 2)),
  })),
  limitTrial("resources.processes", "processes", ({ processes }) => ({
    attempt: { try: "processes", count: processes },
    script: `i=0; while [ $i -lt ${processes} ]; do sleep 20 & i=$((i + 1)); echo $i; done`,
    whole: String(processes),
  })),
  limitTrial("resources.disk", "diskMb", ({ diskMb }, { home }) => ({
    attempt: { try: "disk", folder: home, mib: diskMb * 2 },
    script: `head -c ${mib(diskMb * 2)} /dev/zero > "$HOME/fill"; stat -c %s "$HOME/fill"; rm "$HOME/fill"`,
    whole: String(mib(diskMb * 2)),
    role: "agent",
  })),
];

/** What was reached, as far as all of it was. */
async function use(bench: StandardBench, sandbox: Sandbox, strain: Strain): Promise<string | null> {
  const { attempt, script, whole, role } = strain;
  const { probe, signal } = bench;
  if (probe.hasShell !== true) {
    const attempts: Attempts = { used: attempt };
    // The kernel kills what needs more memory than its limit.
    const refused = (error: unknown): Reached => {
      if (error instanceof Killed && attempt.try === "memory") return {};
      throw error;
    };
    return (await tryInside(sandbox, bench, attempts, { role }).catch(refused)).used ?? null;
  }
  const env = { PATH: searchPathOf(sandbox) };
  const argv = ["/bin/sh", "-c", `echo began; ${script}`] as const;
  const { stdout } = await runToEnd(sandbox, { argv, env, signal, role });
  const [began, ...rest] = stdout.trim().split("\n");
  expectConclusive(began === "began", "a shell that was to use up a limit didn't run");
  return rest.at(-1) === whole ? whole : null;
}

export const cpuTrial: StandardTrial = {
  shows: ["resources.cpu"],
  measures: true,
  async run(bench) {
    const slow = await bench.open({ ...bench.network, resources: { cpus } });
    const coresOf = async (sandbox: Sandbox) => {
      const { cores } = await tryInside(sandbox, bench, { cores: { try: "cpu", ms: 300 } });
      return Number(cores ?? Number.NaN) / 100;
    };
    let [kept, free] = [0, 0];
    const isExceeded = () => kept >= cpus * 1.8;
    const isShown = () => free > 2 * Math.max(kept, cpus);
    // A busy host may give less than the limit to both, so the highest of several alternating measurements counts.
    for (let tries = 0; !isExceeded() && (tries < 2 || (tries < 9 && !isShown())); tries += 1) {
      kept = Math.max(kept, await coresOf(slow));
      free = Math.max(free, await coresOf(await bench.closed()));
      kept = Math.max(kept, await coresOf(slow));
    }
    const seen = `${free} cores were used without a limit, and ${kept} with one of ${cpus}`;
    expectThat(!isExceeded() && isShown(), seen);
    return { "resources.cpu": seen };
  },
};

function limitTrial(
  claim: Capability,
  limit: keyof Sizes,
  strainOf: (sizes: Sizes, sandbox: Sandbox) => Strain,
): StandardTrial {
  return {
    shows: [claim],
    async run(bench) {
      const size = sizes[bench.probe.hasShell === true ? "shell" : "node"];
      const resources: ResourceLimits = { [limit]: size[limit] };
      const [limited, free] = await Promise.all([
        bench.open({ ...bench.network, resources }),
        bench.closed().then((closed) => use(bench, closed, strainOf(size, closed))),
      ]);
      expectConclusive(free !== null, "without the limit it can't be used either, so nothing is proven");
      let kept: string | null = null;
      let ending = "";
      try {
        kept = await use(bench, limited, strainOf(size, limited));
        // It can still start others.
        await use(bench, limited, { attempt: { try: "kernel" }, script: "echo up", whole: "up" });
      } catch (error) {
        // gVisor ends together with the process that exceeded it: the limit holds, and the run fails.
        if (!(claim === "resources.memory" && error instanceof SandboxFailed)) throw error;
        ending = ", which ends the sandbox";
      }
      expectThat(kept === null, `${kept} could be used despite the limit`);
      return {
        [claim]: `${free} could be used without a limit, and not with ${limit} ${size[limit]}${ending}`,
      };
    },
  };
}
