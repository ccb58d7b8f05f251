import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "@ambit/backend-kit";
import { makeAuthority } from "@ambit/egress/credentials";
import type { AttackTarget, Tally } from "../../attacks/attack.js";
import { attacks } from "../../attacks/index.js";
import { HttpCaller } from "../../http.js";
import { type Program, pause, startProgram } from "../../machine/program.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import { ownLoopback } from "../../needs.js";
import { type AmbitServer, healthy, startAmbit } from "../../subjects/server/ambit-server.js";
import { type Loop, loopIn, type Spread, spreadOf } from "../loop-looks.js";
import { vitalsOf } from "../vitals.js";
import { startAttackers } from "./attackers.js";
import { type HonestOutcomes, honestCallers } from "./honest.js";
import type { Probe, Probed } from "./prober.js";

export interface HealthOptions {
  /** For each attack alone; all of them together get three times as long. */
  readonly seconds: number;
  /** Only attacks whose names contain this, or `all together`: each of them, but none alone. Default: all. */
  readonly only?: string;
  /** A folder for a CPU profile of the server (`--cpu-prof`). Default: none is made, since it slows the server. */
  readonly profile?: string;
}

/** Answers to one question, in milliseconds. */
export interface Health extends Spread {
  readonly answered: number;
  /** Connections that were refused or cut, and requests without an answer. */
  readonly failed: number;
}

/** What was measured during one attack. */
export interface Phase {
  readonly name: string;
  /** `/health` of the health listener, over a new connection each time. */
  readonly health: Health;
  /** The same of the port that callers use. */
  readonly mainPort: Health;
  /** Of callers with the token, on connections that they keep. */
  readonly kept: Health;
  /** `/health` of a bare server, at the same time on the same machine. */
  readonly floor: Health;
  readonly loop: Loop;
  readonly rssMib: number;
  /** What the attackers did. */
  readonly tally: Tally;
  /** Attacks that did nothing. */
  readonly idle: readonly string[];
  readonly honest: HonestOutcomes;
}

const hostileAgent = fileURLToPath(new URL("../../attacks/hostile-agent.js", import.meta.url));
const proberEntry = fileURLToPath(new URL("prober.js", import.meta.url));
const floorEntry = fileURLToPath(new URL("../../floors/bare-hono.js", import.meta.url));
const loopWatch = fileURLToPath(new URL("../../plugins/loop-watch.js", import.meta.url));
/** Milliseconds after an attack in which the server gets rid of it, before the next one begins. */
const calmMs = 2_000;
const togetherFactor = 3;
const together = "all together";
const token = "token-of-the-soak";

/** Attacks a real server in each way alone, then in all ways together, and asks for its health meanwhile. */
export async function healthUnderAttack(
  { seconds, only = "", profile }: HealthOptions,
  onPhase: (phase: Phase) => void,
): Promise<readonly Phase[]> {
  await using folder = await temporaryFolder();
  const looks = join(folder.path, "looks.ndjson");
  const own = await ownLoopback();
  const authority = own === undefined ? undefined : await makeAuthority();
  const trusted = join(folder.path, "authority.pem");
  await writeFile(trusted, authority?.certificate ?? "");
  await using ambit = await startAmbit({
    plugins: [
      { use: loopWatch, config: { file: looks } },
      { use: "@ambit/store-sqlite", config: { file: join(folder.path, "runs.sqlite") } },
      "@ambit/model-route",
      { use: "@ambit/mcp-client", config: { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true } },
    ],
    sandbox: authority === undefined ? {} : { trustedAuthorities: [trusted] },
    harness: { agents: { hostile: { command: hostileAgent }, hostile_model: withModel } },
    nodeOptions: profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`],
    token,
    answersHealthApart: true,
    webhooks: { secret: `whsec_${Buffer.alloc(32, 7).toString("base64")}` },
  });
  const floorPort = await freePort();
  const floorUrl = `http://127.0.0.1:${floorPort}`;
  const floor = startProgram(floorEntry, { arguments: [String(floorPort)] });
  const floorCaller = new HttpCaller(floorUrl);
  await healthy(floor, floorCaller, 5);
  floorCaller.close();
  const prober = startProgram(proberEntry, {
    arguments: [JSON.stringify(probesOf(ambit, floorUrl))],
    messages: true,
  });
  const target: AttackTarget = {
    url: ambit.url,
    token,
    ...(own === undefined || authority === undefined
      ? {}
      : { host: { name: own.name, ...(await authority.certificateFor(own.name)) } }),
  };
  const names = Object.keys(attacks).filter((name) => name.includes(only));
  const atOnce = only === together ? Object.keys(attacks) : names;
  const phases: Phase[] = [];
  const measure = async (name: string, chosen: readonly string[], forSeconds: number) => {
    const phase = await phaseOf({ ambit, prober, target, looks }, name, chosen, forSeconds);
    phases.push(phase);
    onPhase(phase);
    await pause(calmMs);
  };
  try {
    await measure("no attack", [], seconds);
    for (const name of names) await measure(name, [name], seconds);
    if (atOnce.length > 1) await measure(together, atOnce, togetherFactor * seconds);
  } finally {
    await Promise.all([prober.stop(), floor.stop()]);
  }
  return phases;
}

/** In the order of a phase's figures. */
function probesOf({ url, healthUrl }: AmbitServer, floorUrl: string): readonly Probe[] {
  if (healthUrl === undefined) throw new Error("the server has no health listener");
  return [
    { url: `${healthUrl}/health`, isKept: false },
    { url: `${url}/health`, isKept: false },
    // The cheapest route that needs a token: `/health` needs none, and its connection has no known caller.
    { url: `${url}/subscription-status`, token, isKept: true },
    { url: `${floorUrl}/health`, isKept: false },
  ];
}

const withModel = {
  command: hostileAgent,
  model: {
    protocol: "anthropic",
    url: "http://127.0.0.1:9",
    default: "hostile",
    credential: "HOSTILE_KEY",
    baseUrlVariable: "HOSTILE_BASE_URL",
  },
};

interface Stage {
  readonly ambit: AmbitServer;
  readonly prober: Program;
  readonly target: AttackTarget;
  readonly looks: string;
}

async function phaseOf(
  { ambit, prober, target, looks }: Stage,
  name: string,
  chosen: readonly string[],
  seconds: number,
): Promise<Phase> {
  const attackers = await startAttackers(chosen, target);
  const honest: HonestOutcomes = { ok: 0, refused: 0, failed: 0 };
  const over = new AbortController();
  const callers = honestCallers(ambit.url, token, honest, over.signal);
  await probed(prober);
  const from = Date.now();
  let rssMib = 0;
  for (let second = 0; second < seconds; second += 1) {
    await pause(1_000);
    rssMib = Math.max(rssMib, vitalsOf(ambit.program.pid).rssMib);
  }
  const to = Date.now();
  const [health, mainPort, kept, floor] = (await probed(prober)).map(healthOf);
  over.abort();
  await Promise.all([callers, attackers.stop()]);
  if (health === undefined || mainPort === undefined || kept === undefined || floor === undefined)
    throw new Error("the prober measured nothing");
  const loop = loopIn(looks, from, to);
  return {
    name,
    health,
    mainPort,
    kept,
    floor,
    rssMib,
    honest,
    loop,
    tally: attackers.tally(),
    idle: attackers.idle(),
  };
}

/** What the prober has measured since it was last asked. */
async function probed(prober: Program): Promise<readonly Probed[]> {
  const answered = once(prober.child, "message");
  prober.child.send("report");
  const [measured]: (readonly Probed[])[] = await answered;
  return measured ?? [];
}

function healthOf({ ms, failed }: Probed): Health {
  return { ...spreadOf(ms), answered: ms.length, failed };
}
