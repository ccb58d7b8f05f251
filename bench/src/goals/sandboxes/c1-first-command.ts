import { messageOf } from "@ambit/core";
import type { Goal, GoalMeasurement, Limit } from "../../goal.js";
import { median, percentile, rotating, short } from "../../measure.js";
import { confinement } from "../../needs.js";
import {
  type FirstCommandSide,
  type FirstCommands,
  firstCommandSides,
  startFirstCommands,
} from "../../subjects/sandboxes/first-command.js";

const titles: Readonly<Record<FirstCommandSide, { readonly what: string; readonly limit?: Limit }>> = {
  plain: { what: "a plain spawn, without a sandbox" },
  bubblewrap: { what: "bubblewrap by its manual" },
  ambit: { what: "Ambit's local sandbox, network off", limit: { atMost: 20 } },
  "ambit-limited": {
    what: "the same with limits of memory, processes and CPU",
    limit: { atMost: 25 },
  },
};

/** ComputeSDK's method, sequential: create a sandbox, run `node -v`, until its output. */
export const firstCommand: Goal = {
  id: "C1",
  title: "creating a sandbox, and `node -v` in it, until its output",
  goal: "≤ 20 ms; ≤ 25 ms with limits",
  needs: [confinement],
  async run({ pairs, progress }) {
    await using commands = startFirstCommands();
    const sides: FirstCommandSide[] = [];
    for (const side of firstCommandSides) {
      try {
        await commands.measure(side);
        sides.push(side);
      } catch (error) {
        progress(`C1: ${messageOf(error)}`);
      }
    }
    return await measured(commands, sides, pairs(30));
  },
};

async function measured(
  commands: FirstCommands,
  sides: readonly FirstCommandSide[],
  rounds: number,
): Promise<readonly GoalMeasurement[]> {
  const costs = await rotating(sides, (side) => commands.measure(side), { rounds });
  const msOf = (side: FirstCommandSide) => (costs.get(side) ?? []).map(({ ms }) => ms);
  const [plain, floor] = [msOf("plain"), msOf("bubblewrap")];
  return sides.flatMap((side): GoalMeasurement[] => {
    const values = msOf(side);
    const cpu = median((costs.get(side) ?? []).map(({ cpuMs }) => cpuMs));
    const tail = `p95 ${short(percentile(values, 95))}, p99 ${short(percentile(values, 99))} ms`;
    const row: GoalMeasurement = {
      ...titles[side],
      unit: "ms",
      values,
      note: `${tail}; CPU ${short(cpu)} ms`,
    };
    if (!side.startsWith("ambit")) return [row];
    const { what } = titles[side];
    return [
      row,
      { what: `${what} ÷ bubblewrap`, unit: "×", values: ratios(values, floor) },
      {
        what: `${what} − a plain spawn`,
        unit: "ms",
        values: values.map((ms, at) => ms - (plain[at] ?? Number.NaN)),
      },
    ];
  });
}

const ratios = (values: readonly number[], floor: readonly number[]) =>
  values.map((ms, at) => ms / (floor[at] ?? Number.NaN));
