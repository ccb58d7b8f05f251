import { messageOf } from "@ambit/core";
import type { Goal, GoalMeasurement, GoalOptions } from "../../goal.js";
import type { HttpCaller } from "../../http.js";
import { pause } from "../../machine/program.js";
import { median, rotating, short, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import { openAcpx } from "../../peers/acpx.js";
import { openAiSdk } from "../../peers/ai-sdk.js";
import { startSandboxAgent } from "../../peers/sandbox-agent.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { type ServerOptions, startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

const script = "say hello";
const boundary = { network: "off", filesystem: "workspace" };

/** Milliseconds for what a run closes, and for the start of the next agent, to end. */
const quietMs = 400;

/** By side: from the request until the result of a run that has no agent yet. */
type Runs = Map<string, () => Promise<number>>;

const ahead = "started ahead, in its jail";
const jailed = "in its jail";
const unconfined = "unconfined";
const second = "second prompt";
const sandboxAgent = "sandbox-agent";
const acpx = "acpx";
const aiSdk = "the AI SDK's harness";

export const coldRunOfPeers: Goal = {
  id: "P1",
  title: "cold run of the demo agent, beside other runners (--peers)",
  goal: "started ahead: ≤ 1.5 second prompts; ≤ 1 × each other runner",
  needs: [linux],
  async run(options) {
    await using opened = new AsyncDisposableStack();
    const runs = await openRuns(options, opened);
    const measure = async (side: string) => {
      await pause(quietMs);
      return (await runs.get(side)?.()) ?? Number.NaN;
    };
    const costs = await rotating([...runs.keys()], measure, { rounds: options.pairs(15) });
    const row = (side: string, floor: string, limit?: { atMost: number }): GoalMeasurement => {
      const [own = [], other = []] = [costs.get(side), costs.get(floor)];
      return {
        what: `${side} ÷ ${floor}`,
        unit: "×",
        values: own.map((ms, at) => ms / (other[at] ?? Number.NaN)),
        ...(limit === undefined ? {} : { limit }),
        note: `${short(median(own))} / ${short(median(other))} ms`,
      };
    };
    const others = [sandboxAgent, acpx, aiSdk].filter((one) => costs.has(one));
    return [
      row(ahead, second, { atMost: 1.5 }),
      row(ahead, jailed),
      ...others.flatMap((other) => [
        row(ahead, other, { atMost: 1 }),
        row(jailed, other),
        row(unconfined, other),
      ]),
    ];
  },
};

async function openRuns({ peers, progress }: GoalOptions, opened: AsyncDisposableStack): Promise<Runs> {
  const ambit = async (options: ServerOptions) => opened.use(await startAmbit(options)).caller;
  const prewarm = { demo: [{ agents: 1, request: prewarmed }] };
  const metrics = ["@ambit/metrics-prometheus"];
  const waiting = await ambit({ unconfined: "allow", harness: { prewarm }, plugins: metrics });
  const confined = await ambit({ unconfined: "allow" });
  const plain = await ambit({});
  const direct = opened.use(startAcpDirect());
  await direct.open("open");
  const confinedBody = demoRequest(script, { sandboxPermission: boundary });
  const runs: Runs = new Map([
    [
      ahead,
      async () => {
        await waits(waiting);
        return await timed(() => run(waiting, confinedBody));
      },
    ],
    [jailed, () => timed(() => run(confined, confinedBody))],
    [unconfined, () => timed(() => run(plain, demoRequest(script)))],
    [second, () => timed(() => direct.prompt("open", script))],
  ]);
  if (!peers) return runs;
  const attempt = async (name: string, open: () => Promise<() => Promise<number>>) => {
    try {
      runs.set(name, await open());
    } catch (error) {
      progress(`P1: ${name}: ${messageOf(error)}`);
    }
  };
  await attempt(sandboxAgent, async () => {
    const server = opened.use(await startSandboxAgent());
    let last = 0;
    return async () => {
      last += 1;
      const agent = `cold-${last}`;
      return timed(async () => {
        await server.open(agent);
        await server.prompt(agent, script);
      });
    };
  });
  await attempt(aiSdk, async () => {
    const harness = opened.use(await openAiSdk());
    return async () => {
      const ms = await timed(async () => {
        await harness.open("cold");
        await harness.prompt("cold", script);
      });
      await harness.close("cold");
      return ms;
    };
  });
  await attempt(acpx, async () => {
    const command = opened.use(await openAcpx());
    return () => timed(() => command.run(script));
  });
  return runs;
}

/** The part of the request that decides how its agent starts. */
const prewarmed = { permissions: { default: "allow" }, sandboxPermission: boundary };

async function waits(caller: HttpCaller): Promise<void> {
  while (!(await caller.get("/metrics")).text.includes("\nambit_prewarm_waiting 1")) await pause(50);
  await pause(quietMs);
}
