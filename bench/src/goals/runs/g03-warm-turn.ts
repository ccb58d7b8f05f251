import { messageOf } from "@ambit/core";
import type { Goal, GoalMeasurement, GoalOptions } from "../../goal.js";
import { pause } from "../../machine/program.js";
import { median, rotating, short, timed } from "../../measure.js";
import { linux } from "../../needs.js";
import { openAiSdk } from "../../peers/ai-sdk.js";
import { startSandboxAgent } from "../../peers/sandbox-agent.js";
import { startAcpDirect } from "../../subjects/agents/acp-direct.js";
import { startAmbit } from "../../subjects/server/ambit-server.js";
import { demoRequest } from "../../subjects/server/requests.js";
import { run } from "../../subjects/server/runs.js";

/** Milliseconds, as long as a fast turn; those of real agents take seconds. */
const working = "say let me see\nsleep 50\nsay done";
const instant = "say hi";

/** Milliseconds in which a user reads, and the processor's caches are filled with something else. */
const idleMs = 1_000;

/** Turns of each side before the first that counts: V8 has compiled what a server that runs for a while has. */
const warmUp = 30;

const boundary = { network: "off", filesystem: "workspace" };

/** By side: a turn of an agent that is open. */
type Turns = ReadonlyMap<string, (script: string) => Promise<unknown>>;

const unconfined = "unconfined";
const jailed = "in its jail";
const floor = "second prompt";
/** Other runners, each with how it is started. */
const peers = [
  ["sandbox-agent", startSandboxAgent],
  ["the AI SDK's harness", openAiSdk],
] as const;

/** A named session keeps its agent, so the next turn costs only itself. */
export const warmTurn: Goal = {
  id: "G3",
  title: "warm turn ÷ second prompt on an open ACP session",
  goal: "≤ 1.10; in a jail after an idle second ≤ 1.30; at most 4 ms more than it",
  needs: [linux],
  async run(options) {
    await using opened = new AsyncDisposableStack();
    const turns = await openTurns(options, opened);
    for (const turn of turns.values()) for (let time = 0; time < warmUp; time += 1) await turn(instant);
    const rounds = options.pairs(30);
    return [
      ...(await measured(turns, working, { what: "50 ms of work", rounds, idle: 0 })),
      ...(await measured(turns, instant, { what: "no work", rounds, idle: 0 })),
      ...(await measured(turns, working, {
        what: "50 ms of work, after an idle second",
        rounds,
        idle: idleMs,
      })),
      ...(await measured(turns, instant, { what: "no work, after an idle second", rounds, idle: idleMs })),
    ];
  },
};

async function openTurns(
  { peers: hasPeers, progress }: GoalOptions,
  opened: AsyncDisposableStack,
): Promise<Turns> {
  const plain = opened.use(await startAmbit());
  const confined = opened.use(await startAmbit({ unconfined: "allow" }));
  const direct = opened.use(startAcpDirect());
  await direct.open("warm");
  const turns = new Map<string, (script: string) => Promise<unknown>>([
    [unconfined, (script) => run(plain.caller, demoRequest(script, { sessionId: "warm" }))],
    [
      jailed,
      (script) =>
        run(confined.caller, demoRequest(script, { sessionId: "warm", sandboxPermission: boundary })),
    ],
    [floor, (script) => direct.prompt("warm", script)],
  ]);
  if (!hasPeers) return turns;
  for (const [name, start] of peers) {
    try {
      const other = opened.use(await start());
      await other.open("warm");
      turns.set(name, (script) => other.prompt("warm", script));
    } catch (error) {
      progress(`G3: ${name}: ${messageOf(error)}`);
    }
  }
  return turns;
}

interface Series {
  readonly what: string;
  readonly rounds: number;
  /** Milliseconds before each turn. */
  readonly idle: number;
}

async function measured(
  turns: Turns,
  script: string,
  { what, rounds, idle }: Series,
): Promise<readonly GoalMeasurement[]> {
  const costs = await rotating(
    [...turns.keys()],
    async (side) => {
      if (idle > 0) await pause(idle);
      return timed(() => turns.get(side)?.(script));
    },
    { rounds, warmUp: 1 },
  );
  const of = (side: string) => costs.get(side) ?? [];
  const compared = (side: string, other: string) => {
    const over = (how: (own: number, others: number) => number) =>
      of(side).map((own, at) => how(own, of(other)[at] ?? Number.NaN));
    const note = `${short(median(of(side)))} / ${short(median(of(other)))} ms`;
    return { over, note };
  };
  return [unconfined, jailed].flatMap((side): GoalMeasurement[] => {
    const { over, note } = compared(side, floor);
    const name = `${side}, ${what}`;
    const rows: GoalMeasurement[] =
      script === working
        ? [{ what: name, unit: "×", values: over(ratio), limit: { atMost: idle > 0 ? 1.3 : 1.1 }, note }]
        : [
            {
              what: `${name}: more than it`,
              unit: "ms",
              values: over(difference),
              limit: { atMost: 4 },
              note,
            },
          ];
    const measuredPeers = peers.map(([peer]) => peer).filter((peer) => costs.has(peer));
    const beside = measuredPeers.map((peer): GoalMeasurement => {
      const { over: overIt, note: both } = compared(side, peer);
      return { what: `${name} ÷ ${peer}`, unit: "×", values: overIt(ratio), note: both };
    });
    return [...rows, ...beside];
  });
}

const ratio = (own: number, other: number) => own / other;
const difference = (own: number, other: number) => own - other;
