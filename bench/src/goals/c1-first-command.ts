import { messageOf } from "@ambit/core";
import type { Goal, GoalMeasurement, GoalOptions, Limit } from "../goal.js";
import { median, percentile, rotating, short } from "../measure.js";
import { confinement } from "../needs.js";
import { installPeer } from "../peers/install-peer.js";
import { openEngine } from "../subjects/sandboxes/docker.js";
import {
  type FirstCommandCost,
  type FirstCommandSide,
  type FirstCommands,
  firstCommandSides,
  type Places,
  startFirstCommands,
} from "../subjects/sandboxes/first-command.js";

interface Title {
  readonly what: string;
  /** In milliseconds, one after the other. */
  readonly limit?: Limit;
  /** What Ambit's figure is compared with. */
  readonly floor?: FirstCommandSide;
}

const titles: Readonly<Record<FirstCommandSide, Title>> = {
  plain: { what: "a plain spawn, without a sandbox" },
  bubblewrap: { what: "bubblewrap by its manual" },
  "sandbox-runtime": { what: "sandbox-runtime" },
  ambit: { what: "Ambit, local, network off", limit: { atMost: 20 }, floor: "bubblewrap" },
  "ambit-limited": {
    what: "Ambit, local, with limits of resources",
    limit: { atMost: 25 },
    floor: "bubblewrap",
  },
  "docker-run": { what: "docker run --rm (runc), same restrictions" },
  "ambit-docker": { what: "Ambit, a new container (runc)", limit: { atMost: 250 }, floor: "docker-run" },
  "ambit-docker-prepared": {
    what: "Ambit, a prepared container (runc)",
    limit: { atMost: 15 },
    floor: "docker-run",
  },
  "docker-run-gvisor": { what: "docker run --rm (gVisor), same restrictions" },
  "ambit-gvisor": { what: "Ambit, a new container (gVisor)", floor: "docker-run-gvisor" },
};

/** Starts of a burst, and of a staggered series with this many milliseconds between two starts. */
const together = 10;
const staggerMs = 200;
/** A container takes long enough that more rounds tell little more. */
const maxContainerRounds = 20;
const isLocal = (side: FirstCommandSide) => !/docker|gvisor/.test(side);

const runtimePeer = {
  name: "@anthropic-ai/sandbox-runtime",
  version: "0.0.83",
  license: "Apache-2.0",
  entry: "dist/index.js",
};

/** ComputeSDK's method: create a sandbox, run `node -v`, until its output; one after the other, staggered, and at once. */
export const firstCommand: Goal = {
  id: "C1",
  title: "creating a sandbox, and `node -v` in it, until its output",
  goal: "≤ 20 ms; ≤ 25 ms with limits; container ≤ 250 ms; prepared ≤ 15 ms; ≤ 1.15 docker run",
  needs: [confinement],
  async run(options) {
    await using places = await openPlaces(options);
    await using commands = startFirstCommands(places.places);
    const sides: FirstCommandSide[] = [];
    for (const side of firstCommandSides) {
      try {
        await commands.measure(side);
        sides.push(side);
      } catch (error) {
        options.progress(`C1: ${titles[side].what}: ${messageOf(error)}`);
      }
    }
    return [
      ...(await inSequence(commands, sides, options.pairs(30))),
      ...(await inSeries(commands, sides, "staggered", staggerMs)),
      ...(await inSeries(commands, sides, "burst", 0)),
    ];
  },
};

/** What is there of an engine and of other sandboxes. */
async function openPlaces({ peers, progress }: GoalOptions): Promise<AsyncDisposable & { places: Places }> {
  const opened = new AsyncDisposableStack();
  const attempt = async <Result>(what: string, make: () => Promise<Result>) => {
    try {
      return await make();
    } catch (error) {
      progress(`C1: ${what}: ${messageOf(error)}`);
      return undefined;
    }
  };
  const engine = await attempt("no Docker engine runs here", async () => opened.use(await openEngine()));
  const sandboxRuntime = peers ? await attempt("sandbox-runtime", () => installPeer(runtimePeer)) : undefined;
  const places = {
    ...(engine === undefined ? {} : { engine: { socket: engine.socket, image: engine.image } }),
    ...(sandboxRuntime === undefined ? {} : { sandboxRuntime }),
  };
  return { places, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

async function inSequence(
  commands: FirstCommands,
  sides: readonly FirstCommandSide[],
  rounds: number,
): Promise<readonly GoalMeasurement[]> {
  const measure = (side: FirstCommandSide) => commands.measure(side);
  const local = await rotating(sides.filter(isLocal), measure, { rounds });
  const containers = sides.filter((side) => !isLocal(side));
  const inContainers = await rotating(containers, measure, { rounds: Math.min(rounds, maxContainerRounds) });
  const costs = new Map([...local, ...inContainers]);
  const msOf = (side: FirstCommandSide) => costs.get(side)?.map(({ ms }) => ms) ?? [];
  return sides.flatMap((side): GoalMeasurement[] => {
    const { what, limit, floor } = titles[side];
    const values = msOf(side);
    const note = isLocal(side) ? `; CPU ${short(median(cpuOf(costs.get(side))))} ms` : "";
    const row: GoalMeasurement = { ...rowOf(side, "sequential", values, note), ...(limit && { limit }) };
    if (floor === undefined || !costs.has(floor)) return [row];
    const theirs = msOf(floor);
    const ratios = values.map((ms, at) => ms / (theirs[at] ?? Number.NaN));
    const goal = side === "ambit-docker" ? { limit: { atMost: 1.15 } } : {};
    return [row, { what: `${what} ÷ ${titles[floor].what}`, unit: "×", values: ratios, ...goal }];
  });
}

const cpuOf = (costs: readonly FirstCommandCost[] = []) => costs.map(({ cpuMs }) => cpuMs);

/** All starts of one side, then those of the next. */
async function inSeries(
  commands: FirstCommands,
  sides: readonly FirstCommandSide[],
  mode: "staggered" | "burst",
  betweenMs: number,
): Promise<readonly GoalMeasurement[]> {
  const rows: GoalMeasurement[] = [];
  // Prepared containers are for sessions that follow each other.
  for (const side of sides.filter((one) => one !== "ambit-docker-prepared")) {
    const costs = await Promise.all(
      Array.from({ length: together }, async (_, at) => {
        await new Promise((resolve) => setTimeout(resolve, at * betweenMs));
        return await commands.measure(side);
      }),
    );
    const values = costs.map(({ ms }) => ms);
    rows.push(rowOf(side, mode, values));
  }
  return rows;
}

function rowOf(
  side: FirstCommandSide,
  mode: "sequential" | "staggered" | "burst",
  values: readonly number[],
  more = "",
): GoalMeasurement {
  const { what } = titles[side];
  const how =
    mode === "sequential" ? "" : mode === "burst" ? `, ${together} at once` : `, each ${staggerMs} ms`;
  const note = `p95 ${short(percentile(values, 95))}, p99 ${short(percentile(values, 99))} ms${more}`;
  return { what: `${what}${how}`, unit: "ms", values, note, point: { label: what, series: mode } };
}
