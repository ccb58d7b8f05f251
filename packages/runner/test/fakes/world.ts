import "reflect-metadata";
import { createSecretKey, type KeyObject } from "node:crypto";
import type { AmbitError } from "@ambit/core";
import { Registry } from "@ambit/core";
import type { AgentEvent, RunResult, StreamRecord } from "@ambit/core/contract";
import {
  type Dialect,
  definePlugin,
  type ModelGateway,
  type RunObserver,
  type ToolExecutor,
  type ToolPolicy,
} from "@ambit/core/plugin";
import { FakeDelivery } from "@ambit/fakes/delivery";
import { clientExecutor, FakeExecutor } from "@ambit/fakes/executor";
import { type HarnessBehaviour, type Script, ScriptedHarness } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { FakeSandboxBackend, type SandboxBehaviour } from "@ambit/fakes/sandbox-backend";
import { FakeToolSource } from "@ambit/fakes/tool-source";
import { z } from "zod";
import type { AdmissionRules } from "../../src/admission/admission.js";
import {
  type PermissionCeiling,
  type Run,
  type RunLimits,
  Runner,
  runLimitsSchema,
} from "../../src/index.js";
import type { HideSecrets } from "../../src/operator.js";

export interface WorldOptions {
  readonly script?: Script | readonly Script[];
  readonly sandbox?: SandboxBehaviour;
  readonly harness?: HarnessBehaviour;
  readonly onPublish?: FakeDelivery["onPublish"];
  readonly executors?: readonly ToolExecutor[];
  readonly observers?: readonly RunObserver[];
  readonly limits?: Partial<RunLimits>;
  readonly gateway?: ModelGateway;
  readonly dialect?: Dialect;
  readonly toolPolicies?: readonly ToolPolicy[];
  readonly ceiling?: PermissionCeiling;
  readonly hideSecrets?: HideSecrets;
  readonly freeMemory?: () => number;
  /** Further settings of the operator. */
  readonly rules?: Partial<AdmissionRules>;
  /** The runner's key for the ids of what it asks. */
  readonly key?: KeyObject;
}

export const testKey = createSecretKey("k".repeat(32), "utf8");

/** What one run came to. */
export interface Told {
  readonly run: Run;
  readonly records: readonly StreamRecord[];
  readonly events: readonly AgentEvent[];
  readonly result: RunResult;
  readonly failure: AmbitError | undefined;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** A whole runner whose plugins are fakes. */
export async function createWorld(options: WorldOptions = {}) {
  const log = recordingLog();
  const delivery = new FakeDelivery();
  delivery.onPublish = options.onPublish ?? delivery.onPublish;
  const sandbox = new FakeSandboxBackend(options.sandbox);
  const harness = new ScriptedHarness(delivery, options.harness);
  const { script = [] } = options;
  harness.scripts = typeof script === "function" ? [script] : [...script];
  const callback = new FakeExecutor();
  const executors = options.executors ?? [callback, clientExecutor()];
  const toolSource = new FakeToolSource();
  const plugin = definePlugin({
    name: "fakes",
    api: 1,
    config: z.strictObject({}),
    register: (registrar) => {
      registrar.add("sandbox", sandbox);
      registrar.add("harness", harness);
      registrar.add("delivery", delivery);
      registrar.add("toolSource", toolSource);
      if (options.gateway !== undefined) registrar.add("gateway", options.gateway);
      if (options.dialect !== undefined) registrar.add("dialect", options.dialect);
      for (const policy of options.toolPolicies ?? []) registrar.add("toolPolicy", policy);
      for (const observer of options.observers ?? []) registrar.add("observer", observer);
    },
  });
  const tools = definePlugin({
    name: "fake-tools",
    api: 1,
    config: z.strictObject({}),
    register: (registrar) => {
      for (const executor of executors) registrar.add("executor", executor);
    },
  });
  const never = () => Promise.reject(new Error("nothing is imported here"));
  const registry = await Registry.load(
    [plugin, tools],
    never,
    { timeoutMs: 5_000, maxAgeMs: 3_600_000, retryMs: 15_000 },
    log,
  );
  const limits = runLimitsSchema.parse({ closeMs: 200, ...options.limits });
  const runner = new Runner({
    registry,
    limits,
    permissionCeiling: options.ceiling ?? [],
    log,
    interactionKey: async () => options.key ?? testKey,
    ...options.rules,
    hideSecrets: options.hideSecrets,
    ...(options.freeMemory === undefined ? {} : { freeMemory: options.freeMemory }),
  });

  const admit = (body: object, keepsEvents = false): Promise<Run> =>
    runner.reserve().admit({ messages: [{ role: "user", content: "go" }], ...body }, { keepsEvents });

  const tell = async (run: Run): Promise<Told> => {
    const records: StreamRecord[] = [];
    for await (const record of recordsOf(run)) records.push(record);
    const last = records.at(-1);
    if (last?.kind !== "result") throw new Error("the run ended without a result");
    const events = records.flatMap((record) => (record.kind === "event" ? [record.event] : []));
    return { run, records, events, result: last.result, failure: await run.ended };
  };

  return {
    log,
    delivery,
    sandbox,
    harness,
    callback,
    toolSource,
    registry,
    runner,
    admit,
    tell,
    run: async (body: object = {}, keepsEvents = false) => tell(await admit(body, keepsEvents)),
    /** Ends its runs and sessions. */
    [Symbol.asyncDispose]: () => runner.drain(0),
  };
}

/** Begins a run: its records one by one, for a test that waits for one of them. */
export async function* recordsOf(run: Pick<Run, "parts">): AsyncGenerator<StreamRecord, void, undefined> {
  for await (const part of run.parts()) {
    if ("result" in part) yield { kind: "result", result: part.result };
    else yield* part.records;
  }
}

export function eventsOf<Type extends AgentEvent["type"]>(
  { events }: Pick<Told, "events">,
  type: Type,
): Extract<AgentEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<AgentEvent, { type: Type }> => event.type === type);
}
