import type { Capability } from "@ambit/core/plugin";
import { type Allowance, notRun, type Stage } from "../attacks/attack.js";
import { outcomeOf } from "../attacks/program-attack.js";
import { commandOf, runProgram } from "../programs/run-program.js";
import { waitForLine } from "../programs/wait-for.js";
import { smallLimits } from "../stage/boundaries.js";
import { programAllowance } from "./program-allowance.js";

const halfOf = (limit: number) => Math.floor(limit / 2);

const take = `
held = []
def take():
    for _ in range(${halfOf(smallLimits.memoryMb)}):
        block = bytearray(1 << 20)
        block[::4096] = b"x" * len(block[::4096])
        held.append(block)
    return "%d MiB" % len(held)
attempt("own share", take)`;

const fork = `
hold = os.pipe()
def fork():
    for _ in range(${halfOf(smallLimits.processes)}):
        if os.fork() == 0:
            os.close(hold[1])
            os.read(hold[0], 1)
            os._exit(0)
    return "${halfOf(smallLimits.processes)} processes"
attempt("own share", fork)`;

export const resourcesAllowances = {
  "resources.memory": [
    programAllowance({
      id: "resources.memory/own-share",
      title: "half of the limit can be used",
      alone: true,
      program: take,
    }),
    neighbour("resources.memory", take),
  ],
  "resources.processes": [
    programAllowance({
      id: "resources.processes/own-share",
      title: "half of the limit can be used",
      alone: true,
      program: fork,
    }),
    neighbour("resources.processes", fork),
  ],
  "resources.cpu": [
    programAllowance({
      id: "resources.cpu/own-share",
      title: "a program runs to its end",
      alone: true,
      program: `attempt("sum", lambda: "%d" % sum(range(100000)))`,
    }),
  ],
  "resources.disk": [
    programAllowance({
      id: "resources.disk/own-share",
      title: "half of the limit can be used",
      alone: true,
      program: `
def write():
    with open("half", "wb") as file:
        file.write(bytes(${halfOf(smallLimits.diskMb)} << 20))
    return "${halfOf(smallLimits.diskMb)} MiB"
attempt("own share", write)`,
    }),
  ],
} as const;

/** Each session has a separate limit: together they may use more than one of them alone. */
function neighbour(capability: Capability, program: string): Allowance {
  return {
    id: `${capability}/neighbour`,
    capability,
    title: "two sessions can use their limits at the same time",
    alone: true,
    perform: async (stage: Stage) => {
      const holder = await stage.openAnother();
      const another = await stage.openAnother();
      const holding = [];
      for (const sandbox of [holder, another]) {
        const started = await sandbox.spawn(commandOf(`${program}\nsay("HOLDING")\nsys.stdin.read()`, {}));
        holding.push(started);
        if ((await waitForLine(started.stdout, "HOLDING")) === undefined)
          return notRun("a neighbour ended before it held its share");
      }
      try {
        return outcomeOf(await runProgram(stage.sandbox, program, {}));
      } finally {
        await Promise.all(holding.map((started) => started.kill()));
      }
    },
  };
}
