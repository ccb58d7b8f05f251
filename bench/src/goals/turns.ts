import { randomUUID } from "node:crypto";
import { messageOf } from "@ambit/core";
import { type RealAgent, realAgents } from "../floors/driver-messages.js";
import type { Goal, GoalMeasurement, GoalOptions } from "../goal.js";
import { type HttpCaller, linesOf } from "../http.js";
import { type CpuMeter, meterCpu } from "../machine/cpu-meter.js";
import { pause } from "../machine/program.js";
import { median, rotating, short, timed } from "../measure.js";
import { installedAgents, linux } from "../needs.js";
import { openAcpx } from "../peers/acpx.js";
import { openAiSdk } from "../peers/ai-sdk.js";
import { startSandboxAgent } from "../peers/sandbox-agent.js";
import { startAcpDirect } from "../subjects/agents/acp-direct.js";
import { openPair } from "../subjects/agents/real-agents.js";
import { startAmbit } from "../subjects/server/ambit-server.js";
import { startBareServer } from "../subjects/server/bare-server.js";
import { entryOfEarlier } from "../subjects/server/earlier-version.js";
import { demoRequest, toolCallback, usualTool } from "../subjects/server/requests.js";
import { run, watchRun } from "../subjects/server/runs.js";

/** Milliseconds in which a person reads. The processor's caches are filled with something else meanwhile. */
const readingMs = 1_000;
/** Milliseconds after a turn for what it leaves to do, which its CPU includes. */
const settleMs = 20;
/** Turns of each side before the first that counts: V8 has compiled what a server that runs for a while has. */
const warmUp = 30;
const calls = 20;
const chunks = 30_000;

const floor = "the ACP SDK alone";
const ambit = "Ambit, in its jail";
const unconfined = "Ambit, unconfined";
/** Whose figures have a goal. */
const isSubject = (name: string) => name === ambit || name === unconfined;
const before = "the version before, in its jail";

/** One way to have an agent take its turns. What it doesn't have isn't measured of it. */
interface Side {
  /** CPU milliseconds of its process and of all that it has started. */
  readonly cpuMs?: () => number;
  /** A turn of an agent that is open. */
  readonly turn?: () => Promise<unknown>;
  /** The same, with many events. */
  readonly stream?: () => Promise<unknown>;
  /** A turn of an agent that is started for it. */
  readonly cold?: () => Promise<unknown>;
  /** A turn of an open agent with tool calls. @returns milliseconds from the first event of a call to the last */
  readonly tools?: () => Promise<number>;
  /** A turn of an open agent that is cancelled. @returns milliseconds from then on until it has ended */
  readonly cancel?: () => Promise<number>;
}
type Sides = ReadonlyMap<string, Side>;

interface Figure {
  readonly what: string;
  readonly of: Exclude<keyof Side, "cpuMs">;
  /** Of Ambit's figure divided by the floor's, or of the figure itself in milliseconds. */
  readonly limit: { readonly ratio: number } | { readonly ms: number };
  /** Of the figure's CPU. Default: it isn't measured. */
  readonly cpuRatio?: number;
  /** Of one of so many calls, and of the whole turn, which has this name. Default: of the whole turn. */
  readonly each?: { readonly of: number; readonly whole: string };
  readonly warmUp?: number;
}

const each = { of: calls, whole: `the turn of ${calls} calls` };

const figures: readonly Figure[] = [
  { what: "a warm turn", of: "turn", limit: { ratio: 2 }, cpuRatio: 2, warmUp },
  { what: `a tool call, of ${calls} in a turn`, of: "tools", limit: { ratio: 1.1 }, each },
  { what: "a cold run", of: "cold", limit: { ratio: 1.2 }, cpuRatio: 1.05 },
  { what: `${chunks.toLocaleString("en")} chunks`, of: "stream", limit: { ratio: 1 } },
  { what: "a cancel, until the turn has ended", of: "cancel", limit: { ms: 15 } },
];

export const turns: Goal = {
  id: "T",
  title: "turns of the demo agent as a person makes them, beside the ACP SDK, other runners and --before",
  goal: "warm turn ≤ 2 × the ACP SDK; tool call ≤ 1.1; cold run ≤ 1.2; chunks ≤ 1; cancel ≤ 15 ms",
  needs: [linux],
  async run(options) {
    await using opened = new AsyncDisposableStack();
    const sides = await openSides(options, opened);
    const measured: GoalMeasurement[] = [];
    for (const figure of figures) measured.push(...(await measure(sides, figure, options.pairs(15))));
    return measured;
  },
};

/** What real agents add: their own start, and the turns of their models. */
export const agentTurns: Goal = {
  id: "A",
  title: "the same with real agents and a scripted model, unconfined: Codex, Gemini CLI, Pi",
  goal: "warm turn ≤ 1.1; tool call ≤ 1.1; cold run ≤ 1.05",
  needs: [linux, installedAgents],
  async run(options) {
    const measured: GoalMeasurement[] = [];
    for (const agent of realAgents) {
      await using opened = new AsyncDisposableStack();
      const sides = await openSidesOf(agent, opened);
      const ofAgent = (what: string) => `${agent}: ${what}`;
      for (const figure of figures.filter(({ of }) => of !== "cancel" && of !== "stream")) {
        const limit = { ratio: figure.of === "cold" ? 1.05 : 1.1 };
        const whole = figure.each && { ...figure.each, whole: ofAgent(figure.each.whole) };
        const named = { ...figure, what: ofAgent(figure.what), limit, ...(whole && { each: whole }) };
        measured.push(...(await measure(sides, named, options.pairs(6))));
      }
    }
    return measured;
  },
};

async function measure(sides: Sides, figure: Figure, rounds: number): Promise<readonly GoalMeasurement[]> {
  const { what, of, limit, cpuRatio, each, warmUp: first = 2 } = figure;
  const names = [...sides.keys()].filter((name) => sides.get(name)?.[of] !== undefined);
  for (const name of names) for (let time = 0; time < first; time += 1) await sides.get(name)?.[of]?.();
  const costs = await rotating(
    names,
    async (name) => {
      await pause(readingMs);
      const cpuMs = cpuRatio === undefined ? undefined : sides.get(name)?.cpuMs;
      const cpuBefore = cpuMs?.() ?? Number.NaN;
      let own: unknown;
      const whole = await timed(async () => {
        own = await sides.get(name)?.[of]?.();
      });
      if (cpuMs !== undefined) await pause(settleMs);
      const ms = typeof own === "number" ? own / (each?.of ?? 1) : whole;
      return { ms, whole, cpu: (cpuMs?.() ?? Number.NaN) - cpuBefore };
    },
    { rounds, warmUp: 1 },
  );
  const rows = (part: "ms" | "whole" | "cpu", title: string, goal: Figure["limit"] | undefined) => {
    const valuesOf = (name: string) => (costs.get(name) ?? []).map((cost) => cost[part]);
    const measured = names.filter((name) => valuesOf(name).some(Number.isFinite));
    return measured.flatMap((name): GoalMeasurement[] => {
      const values = valuesOf(name);
      const inMs = goal !== undefined && "ms" in goal ? { limit: { atMost: goal.ms } } : {};
      const row = {
        what: `${title}: ${name}`,
        unit: "ms",
        values,
        ...(isSubject(name) ? inMs : {}),
      } as const;
      if (name === floor || !measured.includes(floor)) return [row];
      const floors = valuesOf(floor);
      const ratios = values.map((value, at) => value / (floors[at] ?? Number.NaN));
      const asRatio = goal !== undefined && "ratio" in goal ? { limit: { atMost: goal.ratio } } : {};
      const note = `${short(median(values))} / ${short(median(floors))} ms`;
      const compared = `${title}: ${name} ÷ ${floor}`;
      return [row, { what: compared, unit: "×", values: ratios, note, ...(isSubject(name) ? asRatio : {}) }];
    });
  };
  return [
    ...rows("ms", what, limit),
    ...(each === undefined ? [] : rows("whole", each.whole, limit)),
    ...(cpuRatio === undefined ? [] : rows("cpu", `${what}, CPU`, { ratio: cpuRatio })),
  ];
}

/** Meters that are opened before what they measure starts others, and closed after it has ended. */
function metersIn(opened: AsyncDisposableStack): (pid: number) => () => number {
  const meters: CpuMeter[] = [];
  opened.defer(async () => void (await Promise.all(meters.map((meter) => meter.close()))));
  return (pid) => {
    const meter = meterCpu(pid);
    meters.push(meter);
    return () => meter.ms();
  };
}

async function openSides(options: GoalOptions, opened: AsyncDisposableStack): Promise<Sides> {
  const cpuOf = metersIn(opened);
  const platform = opened.use(await startBareServer());
  const { url } = platform.caller;
  const direct = opened.use(startAcpDirect());
  const cpuMs = cpuOf(direct.program.pid);
  await direct.open("warm");
  await direct.open("tools", url);
  const sides = new Map<string, Side>([
    [
      floor,
      {
        cpuMs,
        turn: () => direct.prompt("warm", said),
        stream: () => direct.prompt("warm", `stream ${chunks}`),
        cold: () => direct.run(said),
        tools: async () => (await direct.prompt("tools", toolScript)).toolsMs,
      },
    ],
  ]);
  const serve = async (name: string, entry?: string) => {
    const { caller, program } = opened.use(await startAmbit({ unconfined: "allow", entry }));
    sides.set(name, { cpuMs: cpuOf(program.pid), ...turnsOf(caller, url) });
  };
  await serve(ambit);
  if (options.before !== undefined)
    await serve(before, await entryOfEarlier(options.before, options.progress));
  if (options.peers) await openPeers(sides, options, opened, cpuOf);
  return sides;
}

const said = "say hi";
const toolScript = Array(calls).fill('call crm_search_contacts_0 {"query":"ada","limit":10}').join("\n");

/** @param platform the URL that tool calls are posted to */
function turnsOf(caller: HttpCaller, platform: string): Side {
  const boundary = {
    network: { mode: "allowlist", allowlist: [new URL(platform).host] },
    filesystem: "workspace",
  };
  const request = (script: string, more: object) =>
    demoRequest(script, { sandboxPermission: boundary, ...more });
  const tools = {
    sessionId: "tools",
    toolCallback: toolCallback(`${platform}/tools`),
    customTools: [usualTool(0)],
  };
  const warm = { sessionId: "warm" };
  return {
    turn: () => run(caller, request(said, warm)),
    stream: async () => {
      const { deltas } = await watchRun(caller, request(`stream ${chunks}`, warm));
      if (deltas !== chunks) throw new Error(`${deltas} of ${chunks} chunks came`);
    },
    cold: () => run(caller, request(said, {})),
    tools: async () => {
      const { results, toolsMs } = await watchRun(caller, request(toolScript, tools));
      if (results !== calls) throw new Error(`${results} of ${calls} calls went well`);
      return toolsMs;
    },
    cancel: () => {
      const runId = randomUUID();
      return untilCancelled(caller, request("say hi\nhang", { ...warm, runId }), runId);
    },
  };
}

async function untilCancelled(caller: HttpCaller, body: string, runId: string): Promise<number> {
  let begun: number | undefined;
  let last = "";
  for await (const line of linesOf(await caller.open("/run", body, "application/x-ndjson"))) {
    last = line;
    if (begun !== undefined || !line.includes('"type":"message_delta"')) continue;
    begun = performance.now();
    void caller.post(`/runs/${runId}/cancel`, "{}");
  }
  const ended = performance.now();
  if (begun === undefined || !last.includes('"stopReason":"cancelled"'))
    throw new Error(`the run wasn't cancelled: ${last.slice(0, 500)}`);
  return ended - begun;
}

/** Other runners of the same agent. None of them confines it here. */
async function openPeers(
  sides: Map<string, Side>,
  { progress }: GoalOptions,
  opened: AsyncDisposableStack,
  cpuOf: (pid: number) => () => number,
): Promise<void> {
  const attempt = async (name: string, open: () => Promise<Side>) => {
    try {
      sides.set(name, await open());
    } catch (error) {
      progress(`T: ${name}: ${messageOf(error)}`);
    }
  };
  await attempt("sandbox-agent", async () => {
    const server = opened.use(await startSandboxAgent());
    let last = 0;
    const cpuMs = cpuOf(server.pid);
    await server.open("warm");
    return {
      cpuMs,
      turn: () => server.prompt("warm", said),
      stream: () => server.prompt("warm", `stream ${chunks}`),
      cold: async () => {
        last += 1;
        await server.open(`cold-${last}`);
        await server.prompt(`cold-${last}`, said);
      },
    };
  });
  await attempt("the AI SDK's harness", async () => {
    const harness = opened.use(await openAiSdk());
    await harness.open("warm");
    return {
      turn: () => harness.prompt("warm", said),
      stream: () => harness.prompt("warm", `stream ${chunks}`),
      cold: async () => {
        await harness.open("cold");
        await harness.prompt("cold", said);
        await harness.close("cold");
      },
    };
  });
  await attempt("acpx", async () => {
    const command = opened.use(await openAcpx());
    return { cold: () => command.run(said) };
  });
}

async function openSidesOf(agent: RealAgent, opened: AsyncDisposableStack): Promise<Sides> {
  const cpuOf = metersIn(opened);
  const platform = opened.use(await startBareServer());
  const { url } = platform.caller;
  const { ambit: server, direct, request } = opened.use(await openPair(agent));
  const [directCpu, serverCpu] = [cpuOf(direct.program.pid), cpuOf(server.program.pid)];
  await direct.open("warm");
  await direct.open("tools", url);
  const prompt = "[[say hi]]";
  /** Each with a different input: some agents treat equal calls as a loop. */
  const toolPrompt = Array.from(
    { length: calls },
    (_, at) => `[[call crm_search_contacts_0 {"query":"ada","limit":${at + 1}}]]`,
  ).join(" ");
  const tools = {
    sessionId: "tools",
    toolCallback: toolCallback(`${url}/tools`),
    customTools: [usualTool(0)],
  };
  return new Map<string, Side>([
    [
      floor,
      {
        cpuMs: directCpu,
        turn: () => direct.prompt("warm", prompt),
        cold: () => direct.run(prompt),
        tools: async () => (await direct.prompt("tools", toolPrompt)).toolsMs,
      },
    ],
    [
      unconfined,
      {
        cpuMs: serverCpu,
        turn: () => run(server.caller, request(prompt, { sessionId: "warm" })),
        cold: () => run(server.caller, request(prompt)),
        tools: async () => (await watchRun(server.caller, request(toolPrompt, tools))).toolsMs,
      },
    ],
  ]);
}
