import { createSecretKey } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NotFound, Registry, RunCancelled, RunnerLost } from "@ambit/core";
import type { AgentEvent, RunResult } from "@ambit/core/contract";
import { definePlugin, type PublishedOutcome, type StoreBackend } from "@ambit/core/plugin";
import { endedBy, RecordedRuns, Sealing, storeSettingsSchema } from "@ambit/durable";
import type { Store, StoredInteraction } from "@ambit/durable/store";
import { FakeDelivery } from "@ambit/fakes/delivery";
import { clientExecutor, FakeExecutor } from "@ambit/fakes/executor";
import { done, forever, ScriptedHarness, type ScriptedTurn, untilAborted } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { FakeSandboxBackend } from "@ambit/fakes/sandbox-backend";
import { type Run, Runner, runLimitsSchema } from "@ambit/runner";
import { sqliteStore } from "@ambit/store-sqlite";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";

const worlds = process.env.AMBIT_SOAK === "1" ? 10_000 : 200;
const atOnce = 8;
const seed = Number(process.env.AMBIT_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Numbers in [0, 1) that depend on the seed only (mulberry32). */
function randomOf(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Dice {
  constructor(readonly next: () => number) {}
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }
  chance(probability: number): boolean {
    return this.next() < probability;
  }
  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.below(items.length)] ?? items[0];
  }
  shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map((item) => ({ item, at: this.next() }))
      .sort((one, other) => one.at - other.at)
      .map(({ item }) => item);
  }
}

type Kind = "approval" | "own" | "client" | "input";

/** What the agent wants to do once, and what became of it. */
interface Wanted {
  readonly kind: Kind;
  readonly n: number;
  /** What its user says, whenever he is asked. */
  readonly approves: boolean;
  executions: number;
  /** Whether it had an outcome, or may have had one. */
  isBegun: boolean;
  /** Set once the agent has what it asked for, and doesn't lose it. */
  outcome: string | undefined;
}

/** What happens during a turn. */
interface Plan {
  readonly replica: 0 | 1;
  readonly calls: readonly Wanted[];
  readonly parallel: boolean;
  readonly waits: boolean;
  /** The process is killed at this call: before it is sent, or between sending and its response. */
  readonly kill: { readonly call: Wanted; readonly when: "before" | "between" } | undefined;
  /** The model fails after so many calls. */
  readonly failsAfter: number | undefined;
}

/** Milliseconds of one world on a busy machine; one that takes longer hangs. */
const worldMs = 60_000;

const key = createSecretKey(Buffer.alloc(32, 7));
const log = recordingLog();

/** One process: a runner and its runs, on a store that others share. */
class Replica {
  isDead = false;
  readonly died = Promise.withResolvers<void>();

  private constructor(
    readonly runner: Runner,
    readonly runs: RecordedRuns,
    readonly die: () => void,
  ) {}

  static async open(shared: Store, place: string, world: World): Promise<Replica> {
    const killed = { now: false };
    const store = new Proxy(shared, {
      get(target, name) {
        const method: unknown = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return (...given: readonly unknown[]) =>
          killed.now ? forever() : Reflect.apply(method, target, given);
      },
    });
    const delivery = new FakeDelivery();
    const harness = new ScriptedHarness(delivery);
    harness.scripts = [(turn) => world.script(turn)];
    const plugin = definePlugin({
      name: "fakes",
      api: 1,
      config: z.strictObject({}),
      register: (registrar) => {
        registrar.add("sandbox", new FakeSandboxBackend());
        registrar.add("harness", harness);
        registrar.add("delivery", delivery);
        registrar.add("executor", world.executor);
        registrar.add("executor", clientExecutor());
      },
    });
    const never = () => Promise.reject(new Error("nothing is imported here"));
    const registry = await Registry.load(
      [plugin],
      never,
      { timeoutMs: 5_000, maxAgeMs: 3_600_000, retryMs: 15_000 },
      log,
    );
    const runner = new Runner({
      registry,
      limits: runLimitsSchema.parse({ closeMs: 20, pauseMs: 6 }),
      permissionCeiling: [],
      log,
      interactionKey: async () => key,
    });
    const sender = {
      isConfigured: false,
      attempts: 1,
      retryMs: 1,
      timeoutMs: 1,
      send: () => Promise.reject(new Error("there are no webhooks")),
    };
    const runs = await RecordedRuns.open({
      store,
      settings: storeSettingsSchema.parse({}),
      sealing: new Sealing(key),
      log,
      place,
      address: place,
      sender,
      openSessions: () => runner.sessions,
      onLost: () => {},
      onLapse: () => {},
      onPosted: () => {},
    });
    runner.keepAnswersIn(runs.answers);
    return new Replica(runner, runs, () => {
      killed.now = true;
    });
  }

  kill(): void {
    this.isDead = true;
    this.die();
    this.died.resolve();
  }

  async stop(): Promise<void> {
    if (!this.isDead) return await this.runner.drain(0).then(() => this.runs.lease.leave());
    void this.runs.lease.leave();
    void this.runs.deliveries.close();
    void this.runner.drain(0);
  }
}

const tools = [
  { name: "act", callRef: "ref", permission: "ask" },
  { name: "pick", kind: "client" },
];
const form = { type: "object", properties: { n: { type: "number" } } };

/** One session on two replicas, whose agent wants some things once each. */
class World {
  readonly dice: Dice;
  readonly session: string;
  readonly wanted: readonly Wanted[];
  /** Whether the agent keeps what its calls came to in a turn that pauses. */
  readonly remembers: boolean;
  readonly executor = new FakeExecutor();
  readonly #replicas: Replica[] = [];
  #plan: Plan | undefined;
  #turns = 0;
  /** What happened, for the report of a failure. */
  readonly trace: unknown[] = [];
  #gained: { readonly wanted: Wanted; readonly outcome: string }[] = [];

  constructor(
    readonly index: number,
    readonly store: Store,
  ) {
    this.dice = new Dice(randomOf(seed + index));
    this.session = `s${index}`;
    this.remembers = this.dice.chance(0.5);
    this.wanted = Array.from({ length: 1 + this.dice.below(4) }, (_, n) => ({
      n,
      kind: this.dice.pick<Kind>(["approval", "approval", "own", "client", "input"]),
      approves: this.dice.chance(0.8),
      executions: 0,
      isBegun: false,
      outcome: undefined,
    }));
    this.executor.behaviour.execute = async ({ arguments: { n } }) => {
      const wanted = this.wanted[Number(n)];
      if (wanted === undefined) throw new Error("nobody wanted that");
      await this.#execute(wanted);
      return { status: "completed", output: `done ${n}` };
    };
  }

  async live(): Promise<void> {
    for (const place of [0, 1]) this.#replicas.push(await this.#open(place));
    try {
      const random = 1 + this.dice.below(5);
      for (let turn = 0; turn < random; turn += 1) await this.#turn(this.#randomPlan(), 0.6);
      // From now on nothing goes wrong, and every question is answered: each call gets its outcome.
      for (let turn = 0; turn < 12 && this.#missing.length > 0; turn += 1)
        await this.#turn(
          { ...this.#randomPlan(), calls: this.#missing, kill: undefined, failsAfter: undefined },
          1,
        );
      await this.#judge();
    } finally {
      await Promise.all(this.#replicas.map((replica) => replica.stop()));
    }
  }

  #open(place: number): Promise<Replica> {
    return Replica.open(this.store, `${this.session}-${place}`, this);
  }

  get #missing(): readonly Wanted[] {
    return this.wanted.filter(({ outcome }) => outcome === undefined);
  }

  #randomPlan(): Plan {
    const { dice } = this;
    // An agent that goes on without what it lost is a different one: it makes such a call again in each turn.
    const calls = dice.shuffled(this.#missing).filter(({ isBegun }) => isBegun || dice.chance(0.75));
    const [victim] = dice.shuffled(calls);
    return {
      replica: dice.pick([0, 1]),
      calls,
      parallel: dice.chance(0.5),
      waits: dice.chance(0.3),
      kill:
        victim === undefined || !dice.chance(0.15)
          ? undefined
          : { call: victim, when: dice.pick(["before", "between"]) },
      failsAfter: dice.chance(0.1) ? dice.below(3) : undefined,
    };
  }

  async #turn(plan: Plan, answers: number): Promise<void> {
    const replica = this.#replicas[plan.replica];
    if (replica === undefined) throw new Error("there is no such replica");
    this.#plan = plan;
    this.trace.push({ begins: { ...plan, calls: plan.calls.map(({ kind, n }) => `${kind} ${n}`) } });
    this.#gained = [];
    const run = await replica.runner.reserve().admit(
      {
        sessionId: this.session,
        messages: [{ role: "user", content: "go" }],
        customTools: tools,
        permissions: { default: "ask" },
        runId: `${this.session}-${this.#turns}`,
        ...(plan.waits ? { interactions: { waitMs: 12 } } : {}),
      },
      { keepsEvents: false },
    );
    this.#turns += 1;
    const started = await replica.runs.start(run, "digest");
    if (started === "over_quota" || !("recorder" in started)) throw new Error("the run didn't start");
    const isOver = new AbortController();
    const answering = this.#answerDuring(run, replica, isOver.signal);
    const result = await Promise.race([started.recorder.done, replica.died.promise]);
    // What the agent of an ended turn still does kills nothing.
    this.#plan = undefined;
    isOver.abort();
    await answering;
    const rows = await this.store.interactions({ session: this.session, limit: 1_000 });
    this.trace.push({
      ended: result?.stopReason ?? result?.error ?? "killed",
      gained: this.#gained.map(({ wanted, outcome }) => [wanted.n, outcome]),
      executions: this.wanted.map(({ executions }) => executions),
      questions: rows.map(({ runId, payload, state, answer }) => [
        runId,
        this.#wantedBy(payload)?.n,
        state,
        answer !== undefined,
      ]),
    });
    if (result === undefined || replica.isDead) await this.#recover(run, replica, plan.replica);
    else this.#take(result);
    await this.#answerSome(answers);
  }

  /** What the agent has at the end of a turn. */
  #take(result: RunResult | undefined): void {
    const isWhole = result?.ok === true && result.stopReason === "end_turn";
    for (const { wanted, outcome } of this.#gained) {
      // What the agent did itself can't be handed to it again: its stored conversation has it.
      const isKept = isWhole || wanted.kind === "own" || (this.remembers && result !== undefined);
      if (isKept) wanted.outcome = outcome;
    }
  }

  /** Another process starts in the place of the one that was killed, and ends its runs. */
  async #recover(run: Run, dead: Replica, place: 0 | 1): Promise<void> {
    this.#take(undefined);
    await dead.stop();
    run.cancel(new RunCancelled("killed"));
    const replica = await this.#open(place);
    this.#replicas[place] = replica;
    const row = await this.store.get(run.key);
    if (row?.state !== "running") return;
    const fence = await this.store.takeOver(row.id, row.fence, replica.runs.replica);
    if (fence !== undefined) await this.store.finish(row.id, fence, endedBy(new RunnerLost(), row));
  }

  async #questions(state: StoredInteraction["state"]): Promise<readonly StoredInteraction[]> {
    return this.store.interactions({ session: this.session, state, limit: 1_000 });
  }

  /** Live, or too late for that: while the run is under way. */
  async #answerDuring(run: Run, replica: Replica, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 3));
      for (const question of await this.#questions("open")) {
        if (!this.dice.chance(0.3)) continue;
        try {
          replica.runner.answer(run.key, question.id, this.#bodyFor(question));
        } catch (error) {
          if (!(error instanceof NotFound)) throw error;
          await this.#store(question);
        }
      }
    }
  }

  async #answerSome(probability: number): Promise<void> {
    const open = this.dice.shuffled(await this.#questions("open"));
    for (const question of open) {
      if (!this.dice.chance(probability)) continue;
      await this.#store(question);
      if (this.dice.chance(0.2)) await this.#store(question);
    }
  }

  /** As the route does, on any living replica. */
  async #store(question: StoredInteraction): Promise<void> {
    const replica = this.#replicas.find(({ isDead }) => !isDead);
    await replica?.runs.answers.answer(question.id, this.#bodyFor(question)).catch((error: unknown) => {
      // Its process was killed meanwhile: the caller doesn't know whether it has the answer.
      if (!replica.isDead) throw error;
    });
  }

  #bodyFor({ kind, payload }: StoredInteraction): object {
    const wanted = this.#wantedBy(payload);
    if (kind === "user_approval") return { approved: wanted?.approves ?? false };
    return { output: kind === "user_input" ? { n: wanted?.n ?? -1 } : `picked ${wanted?.n}` };
  }

  #wantedBy(payload: string): Wanted | undefined {
    const { input } = payloadSchema.parse(JSON.parse(payload));
    return this.wanted[input.n ?? Number(input.command ?? input.message)];
  }

  async *script({
    ask,
    onInput,
    tools: connect,
    signal,
  }: ScriptedTurn): AsyncGenerator<AgentEvent, void, undefined> {
    const plan = this.#plan;
    if (plan === undefined) throw new Error("the turn has no plan");
    const connected = connect();
    const turn = this.#turns;
    const make = async (wanted: Wanted): Promise<string | undefined> => {
      const { n, kind } = wanted;
      const id = `${turn}-${n}`;
      const isKilled = plan.kill?.call === wanted && plan.kill.when === "before";
      if (kind === "input") {
        const answer = await untilAborted(signal, Promise.resolve(onInput?.({ message: `${n}`, form })));
        return answer === undefined || answer === "park" ? undefined : `input ${JSON.stringify(answer)}`;
      }
      if (kind === "client")
        return textOf(await untilAborted(signal, connected.call("pick", { n }, { id, signal })));
      const question =
        kind === "own"
          ? { toolCallId: id, toolName: "Bash", input: { command: `${n}` } }
          : { toolCallId: id, toolName: "act", server: "ambit", input: { n } };
      if (kind === "own" || this.dice.chance(0.5)) {
        const answer = await untilAborted(signal, ask(question));
        if (answer === "deny") return "denied";
        if (answer !== "allow") return undefined;
      }
      if (isKilled) {
        if (this.#plan === plan) this.#replicas[plan.replica]?.kill();
        await forever();
      }
      if (kind === "approval")
        return textOf(await untilAborted(signal, connected.call("act", { n }, { id, signal })));
      await this.#execute(wanted);
      return signal.aborted ? undefined : `done ${n}`;
    };
    const reported = ({ kind, n }: Wanted): AgentEvent[] => {
      const name = { approval: "act", client: "pick", own: "Bash", input: "" }[kind];
      if (name === "") return [];
      return [
        { type: "tool_call", id: `${turn}-${n}`, name, input: kind === "own" ? { command: `${n}` } : { n } },
      ];
    };
    const result = ({ kind, n }: Wanted, output: string): AgentEvent[] =>
      kind === "input"
        ? []
        : [{ type: "tool_result", id: `${turn}-${n}`, output, isError: output === "denied" }];
    yield { type: "message", text: "hm" };
    if (plan.parallel) for (const wanted of plan.calls) yield* reported(wanted);
    const making = plan.parallel ? plan.calls.map(make) : [];
    for (const [index, wanted] of plan.calls.entries()) {
      if (plan.failsAfter === index) throw new Error("the model failed");
      if (!plan.parallel) yield* reported(wanted);
      const outcome = await (making[index] ?? make(wanted));
      if (outcome === undefined) {
        if (plan.parallel && !signal.aborted) continue;
        return yield { type: "done", stopReason: "cancelled" };
      }
      wanted.isBegun = true;
      this.#gained.push({ wanted, outcome });
      yield* result(wanted, outcome);
    }
    yield done;
  }

  async #execute(wanted: Wanted): Promise<void> {
    wanted.executions += 1;
    wanted.isBegun = true;
    const plan = this.#plan;
    if (plan?.kill?.call === wanted) {
      this.#replicas[plan.replica]?.kill();
      await forever();
    }
    // Longer than a pause waits for it.
    if (this.dice.chance(0.1)) await new Promise((resolve) => setTimeout(resolve, 15));
  }

  async #judge(): Promise<void> {
    const rows = await this.store.interactions({ session: this.session, limit: 1_000 });
    const of = ({ n }: Wanted, state: StoredInteraction["state"]) =>
      rows.filter((row) => this.#wantedBy(row.payload)?.n === n && row.state === state).length;
    const seen = this.wanted.map((wanted) => ({
      ...wanted,
      unknown: of(wanted, "unknown"),
      waiting: of(wanted, "answered") + of(wanted, "claimed"),
      // One that was asked again in place of another isn't one more.
      isRight: wanted.outcome === outcomeFor(wanted),
    }));
    for (const one of seen) {
      expect(one, "every call has its outcome").toMatchObject({ isRight: true });
      expect(one, "no answer waits for a call that was made").toMatchObject({ waiting: 0 });
      if (one.kind === "client" || one.kind === "input") continue;
      if (!one.approves) expect(one, "what was refused isn't executed").toMatchObject({ executions: 0 });
      else expect(one.executions, JSON.stringify(one)).toBeGreaterThanOrEqual(1);
      // Each further execution needs another approval, after the one whose outcome is unknown.
      expect(one.executions, JSON.stringify(one)).toBeLessThanOrEqual(1 + one.unknown);
    }
  }
}

function outcomeFor({ kind, n, approves }: Wanted): string {
  if (kind === "client") return `picked ${n}`;
  if (kind === "input") return `input {"action":"accept","content":{"n":${n}}}`;
  return approves ? `done ${n}` : "denied";
}

/** Undefined: the agent has no outcome. */
function textOf(outcome: PublishedOutcome | undefined): string | undefined {
  if (outcome === undefined) return undefined;
  if (outcome.output.startsWith("The user did not approve")) return "denied";
  return outcome.isError ? undefined : outcome.output;
}

const payloadSchema = z.object({
  input: z.object({
    n: z.number().optional(),
    command: z.string().optional(),
    message: z.string().optional(),
  }),
});

/** @throws Error where the promise doesn't settle in time. */
async function endsWithin(milliseconds: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("it hangs")), milliseconds);
  });
  await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

let store: Store;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-answers-"));
  const backend: StoreBackend<Store> = sqliteStore({
    file: join(folder, "runs.sqlite"),
    durability: "process",
  });
  store = await backend.open({ log });
});
afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

it(`gives every answered call one outcome, and every executed call one execution, in ${worlds} interleavings`, async () => {
  const failures: string[] = [];
  let next = 0;
  const worker = async () => {
    while (next < worlds && failures.length === 0) {
      const world = new World(next, store);
      next += 1;
      await endsWithin(worldMs, world.live()).catch((error: unknown) => {
        const turns = world.trace.map((turn) => JSON.stringify(turn));
        failures.push([`AMBIT_SEED=${seed}, world ${world.index}: ${String(error)}`, ...turns].join("\n"));
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  expect(failures).toEqual([]);
}, 3_600_000);
