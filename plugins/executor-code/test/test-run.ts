import type { Boundary, RunRequest, RunScope, Sandbox, ToolOutcome, ToolSpec } from "@ambit/core/plugin";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { CodeExecutor, configSchema } from "../src/executor.js";

export const request: RunRequest = {
  messages: [],
  customTools: [],
  credentials: [],
  mcpServers: [],
  skills: [],
  harnessFiles: [],
  permissions: { default: "allow" },
  sandboxPermission: { enforcement: "strict" },
};
const silent = { debug() {}, info() {}, warn() {}, error() {} };

export type Given = Partial<ToolSpec> & Pick<ToolSpec, "runtime" | "code">;
export const python = (code: string) => ({ runtime: "python", code }) as const;
export const node = (code: string) => ({ runtime: "node", code }) as const;

export const executorOf = (config: object = {}) => new CodeExecutor(configSchema.parse(config));

let runs = 0;

function toolOf(given: Given): ToolSpec {
  return { name: "tool", kind: "code", inputSchema: {}, ...given };
}

/** What a run gives an executor: calls, then its end. */
export class TestRun {
  readonly #id = `run-${runs++}`;
  readonly #deferred: (() => void | Promise<void>)[] = [];

  constructor(
    readonly executor: CodeExecutor,
    readonly sandbox: Sandbox,
    readonly resources: Boundary["resources"] = {},
  ) {}

  prepare(...given: readonly Given[]): void {
    if (given.some(({ runtime }) => runtime === "python")) skipWithout("python");
    this.executor.prepare(given.map(toolOf), this.#scope());
  }

  call(given: Given, input = {}, signal = new AbortController().signal): Promise<ToolOutcome> {
    if (given.runtime === "python") skipWithout("python");
    const scope = { ...this.#scope(), signal, timeoutMs: 300, idempotencyKey: "key", mayAct: () => true };
    return this.executor.execute({ id: "1", tool: toolOf(given), arguments: input }, scope);
  }

  #scope(): RunScope {
    return {
      runId: this.#id,
      request,
      boundary: {
        network: { mode: "on", rules: [] },
        filesystem: { mode: "on", readable: [], writable: [], denied: [] },
        resources: this.resources,
        secrets: "visible",
        enforcement: "strict",
      } as const,
      sandbox: this.sandbox,
      defer: (close: () => void | Promise<void>) => void this.#deferred.push(close),
      log: silent,
    };
  }

  async end(): Promise<void> {
    for (const close of this.#deferred.splice(0).reverse()) await close();
  }
}
