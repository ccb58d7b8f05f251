import {
  type Boundary,
  type Log,
  type RunRequest,
  runRequestSchema,
  type Sandbox,
  type ToolCall,
  type ToolOutcome,
  type ToolScope,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress";
import { onTestFinished } from "vitest";
import { type CallbackConfig, CallbackExecutor, configSchema } from "../src/index.js";

const never = () => Promise.reject(new Error("a callback must not touch the sandbox"));
const sandbox: Sandbox = {
  workspace: "/workspace",
  home: "/home",
  confinement: "unconfined",
  evidence: {},
  spawn: never,
  writeFiles: never,
  readFile: never,
  expose: never,
  close: never,
};

export interface LogLine {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export interface Trial {
  readonly endpoint: string;
  readonly tool?: Readonly<Record<string, unknown>>;
  readonly request?: Readonly<Record<string, unknown>>;
  readonly given?: ToolCall["arguments"];
  readonly context?: NonNullable<ToolCall["context"]>;
  readonly signal?: AbortSignal;
  readonly fence?: number;
  readonly mayAct?: () => boolean;
  readonly boundary?: Boundary;
  readonly config?: Partial<CallbackConfig>;
  readonly lookup?: Lookup;
  readonly executor?: CallbackExecutor;
  readonly logged?: LogLine[];
}

export function requestOf({ endpoint, tool = {}, request = {} }: Trial): RunRequest {
  return runRequestSchema.parse({
    toolCallback: { endpoint, authorization: "Access tok-123" },
    customTools: [{ name: "weather", ...("call" in tool ? {} : { callRef: "tools__weather" }), ...tool }],
    ...request,
  });
}

export function executorOf({ config = {}, lookup }: Pick<Trial, "config" | "lookup">): CallbackExecutor {
  const executor = new CallbackExecutor(configSchema.parse(config), lookup);
  onTestFinished(() => executor.close());
  return executor;
}

/** One call of the trial's tool, as a run makes it. */
export async function call(trial: Trial): Promise<ToolOutcome> {
  const request = requestOf(trial);
  const [tool] = request.customTools;
  if (tool === undefined) throw new TypeError("the request has no tool");
  const note = (fields: LogLine["fields"], message: string) => void trial.logged?.push({ fields, message });
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const scope: ToolScope = {
    runId: "run-1",
    request,
    boundary: trial.boundary ?? boundaryOf({ mode: "on", rules: [] }),
    sandbox,
    signal: trial.signal ?? new AbortController().signal,
    timeoutMs: 30_000,
    idempotencyKey: "key-1",
    ...(trial.fence === undefined ? {} : { fence: trial.fence }),
    mayAct: trial.mayAct ?? (() => true),
    defer: never,
    log,
  };
  const executor = trial.executor ?? executorOf(trial);
  const { given = {}, context } = trial;
  const made = { id: "call-1", tool, arguments: given };
  return await executor.execute(context === undefined ? made : { ...made, context }, scope);
}

export function boundaryOf(
  network: Boundary["network"],
  enforcement: Boundary["enforcement"] = "strict",
): Boundary {
  return {
    network,
    filesystem: { mode: "on", readable: [], writable: [], denied: [] },
    resources: {},
    secrets: "visible",
    enforcement,
  };
}
