import { fileURLToPath } from "node:url";
import type { AttackTarget, Tally } from "../../attacks/attack.js";
import { type Program, pause, startProgram } from "../../machine/program.js";

const entry = fileURLToPath(new URL("../../attacks/main.js", import.meta.url));

/** Milliseconds for all attacks to begin: some prepare what they send, and all wait for each other's effects. */
const patienceMs = 20_000;

/** Attacks in processes of their own. */
export interface Attackers {
  /** What they have done so far, such as `half-open connections: connections`. */
  tally(): Tally;
  /** Those that have done nothing: their figures would show nothing. */
  idle(): readonly string[];
  stop(): Promise<void>;
}

/** Resolves when each of them attacks, or has had time to. */
export async function startAttackers(names: readonly string[], target: AttackTarget): Promise<Attackers> {
  const tallies = new Map<string, Tally>();
  const programs = names.map((name): [string, Program] => {
    const program = startProgram(entry, { arguments: [name, JSON.stringify(target)], messages: true });
    program.child.on("message", (tally: Tally) => tallies.set(name, tally));
    return [name, program];
  });
  const isIdle = (name: string) => Object.keys(tallies.get(name) ?? {}).length === 0;
  const end = performance.now() + patienceMs;
  while (names.some(isIdle) && performance.now() < end) await pause(50);
  return {
    tally: () =>
      Object.fromEntries(
        [...tallies].flatMap(([name, tally]) =>
          Object.entries(tally).map(([what, by]) => [`${name}: ${what}`, by] as const),
        ),
      ),
    idle: () => names.filter(isIdle),
    stop: async () => {
      await Promise.all(programs.map(([, program]) => program.stop()));
    },
  };
}
