import type { Boundary, RunRequest, Sandbox, ToolOutcome, ToolSpec } from "@ambit/core/plugin";
import { configSchema } from "../src/config.js";
import { CodeExecutor } from "../src/executor.js";

export const request: RunRequest = {
  messages: [],
  customTools: [],
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

/** What a run gives an executor: calls, then its end. */
export class TestRun {
  readonly #id = `run-${runs++}`;
  readonly #deferred: (() => void | Promise<void>)[] = [];

  constructor(
    readonly executor: CodeExecutor,
    readonly sandbox: Sandbox,
    readonly resources: Boundary["resources"] = {},
  ) {}

  call(given: Given, input = {}, signal = new AbortController().signal): Promise<ToolOutcome> {
    const tool: ToolSpec = { name: "tool", kind: "code", inputSchema: {}, ...given };
    const scope = {
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
      signal,
      timeoutMs: 300,
      defer: (close: () => void | Promise<void>) => void this.#deferred.push(close),
      log: silent,
    };
    return this.executor.execute({ id: "1", tool, arguments: input }, scope);
  }

  async end(): Promise<void> {
    for (const close of this.#deferred.splice(0).reverse()) await close();
  }
}
