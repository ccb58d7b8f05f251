import {
  type Domain,
  type Issue,
  inject,
  pluginTokens,
  type RunScope,
  RunTimedOut,
  SandboxFailed,
  type ToolCall,
  type ToolExecutor,
  type ToolOutcome,
  type ToolScope,
  type ToolSpec,
  type ToolUse,
} from "@ambit/core/plugin";
import type { CodeConfig } from "./config.js";
import { programOf, stdinOf } from "./program.js";
import { failed, outcomeOf } from "./reply.js";
import { collectEnd, collectStart, feed } from "./streams.js";
import { type StartInterpreter, WaitingInterpreters } from "./waiting.js";

/**
 * Runs a tool's snippet in the run's sandbox, only by `sandbox.spawn`: the sandbox's guarantees hold for the snippet too,
 * so the executor has nothing to claim or prove.
 */
export class CodeExecutor implements ToolExecutor {
  readonly name = "code";
  readonly kind = "code";
  readonly site = "sandbox";
  readonly claims = [];

  /** By run. */
  readonly #runs = new Map<RunScope["request"], WaitingInterpreters>();

  constructor(@inject(pluginTokens.config) readonly config: CodeConfig) {}

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources"];
  }

  gaps(): [] {
    return [];
  }

  probe(): Promise<[]> {
    return Promise.resolve([]);
  }

  issues({ tool }: ToolUse): readonly Issue[] {
    const issues: Issue[] = [];
    if (tool.runtime === undefined)
      issues.push({ path: "runtime", message: 'must be "python" or "node" for a code tool' });
    if (tool.code === undefined || tool.code.trim() === "") {
      issues.push({ path: "code", message: "must hold the snippet of a code tool" });
    }
    return issues;
  }

  /** One interpreter of each runtime that the run has tools for: while its model thinks, they come up. */
  prepare(tools: readonly ToolSpec[], scope: RunScope): void {
    const waiting = this.#waitingOf(scope);
    const runtimes = new Set(tools.flatMap(({ runtime }) => runtime ?? []));
    for (const runtime of runtimes) waiting?.prepare(runtime, this.#startIn(scope));
  }

  async execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome> {
    const { maxResultBytes, maxPrintedCharacters } = this.config;
    const { runtime } = call.tool;
    if (runtime === undefined) return failed("code tool has no runtime", "");
    const waiting = this.#waitingOf(scope);
    const start = this.#startIn(scope);
    const stdin = stdinOf(call);
    try {
      const prepared = await waiting?.give(runtime, stdin, scope.signal);
      const child = prepared ?? (await start(runtime, scope.signal));
      let tooLarge = false;
      const reply = collectStart(child.stdout, maxResultBytes, () => {
        tooLarge = true;
        void child.kill();
      });
      const prints = collectEnd(child.stderr, maxPrintedCharacters);
      if (prepared === undefined) await feed(child.stdin, stdin);
      const ended = { exit: await child.exit, reply: await reply, prints: await prints };
      if (tooLarge)
        return failed(
          `code tool returned more than ${maxResultBytes} bytes: return less, or a summary`,
          ended.prints,
        );
      if (scope.signal.aborted) return failed(whyAborted(scope), ended.prints);
      return outcomeOf(ended);
    } catch (error) {
      if (scope.signal.aborted) return failed(whyAborted(scope), "");
      scope.log.warn({ tool: call.tool.name, error }, "a code tool could not be started");
      const why = error instanceof SandboxFailed ? `: ${error.message}` : "";
      return failed(`code tool could not be started in the sandbox${why}`, "");
    } finally {
      // Once the answer is on its way: the next call gains nothing from this one's waiting.
      if (!scope.signal.aborted) setImmediate(() => waiting?.prepare(runtime, start));
    }
  }

  #startIn({ sandbox }: RunScope): StartInterpreter {
    return (runtime, signal) =>
      sandbox.spawn({ ...programOf(runtime, this.config, sandbox.image), role: "tool", signal });
  }

  #waitingOf(scope: RunScope): WaitingInterpreters | undefined {
    if (!this.config.prewarm || !mayPrewarm(scope)) return undefined;
    const earlier = this.#runs.get(scope.request);
    if (earlier !== undefined) return earlier;
    const made = new WaitingInterpreters(scope.log);
    this.#runs.set(scope.request, made);
    scope.defer(() => {
      this.#runs.delete(scope.request);
      return made.close();
    });
    return made;
  }
}

/** What waits counts towards the run's limits, and unconfined it would lie open to every process of its user. */
function mayPrewarm({ sandbox, boundary: { resources } }: RunScope): boolean {
  const { processes = Number.POSITIVE_INFINITY, memoryMb = Number.POSITIVE_INFINITY } = resources;
  return sandbox.confinement === "confined" && processes >= 100 && memoryMb >= 512;
}

function whyAborted({ signal, timeoutMs }: ToolScope): string {
  return signal.reason instanceof RunTimedOut
    ? `code tool timed out after ${timeoutMs}ms`
    : "code tool was aborted";
}
