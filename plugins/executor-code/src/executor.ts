import {
  type Domain,
  type Issue,
  RunTimedOut,
  type ToolCall,
  type ToolExecutor,
  type ToolOutcome,
  type ToolScope,
  type ToolUse,
} from "@ambit/core/plugin";
import { collectEnd, collectStart } from "./collect.js";
import type { CodeConfig } from "./config.js";
import { programOf, stdinOf } from "./program.js";
import { failed, outcomeOf } from "./reply.js";

/**
 * Runs a tool's snippet in the run's sandbox, by `sandbox.spawn` and nothing else: whatever the sandbox guarantees
 * holds for the snippet too, so there is nothing of its own to claim or prove.
 */
export class CodeExecutor implements ToolExecutor {
  readonly name = "code";
  readonly kind = "code";
  readonly site = "sandbox";
  readonly claims = [];

  constructor(readonly config: CodeConfig) {}

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources"];
  }

  covers(): [] {
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

  async execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome> {
    const { largestReturn, longestPrints } = this.config;
    if (call.tool.runtime === undefined) return failed("code tool has no runtime", "");
    try {
      const program = programOf(call.tool.runtime, this.config);
      const child = await scope.sandbox.spawn({ ...program, role: "tool", signal: scope.signal });
      let tooLarge = false;
      const reply = collectStart(child.stdout, largestReturn, () => {
        tooLarge = true;
        void child.kill();
      });
      const prints = collectEnd(child.stderr, longestPrints);
      await feed(child.stdin, stdinOf(call));
      const ended = { exit: await child.exit, reply: await reply, prints: await prints };
      if (tooLarge)
        return failed(
          `code tool returned more than ${largestReturn} bytes: return less, or a summary`,
          ended.prints,
        );
      if (scope.signal.aborted) return failed(whyAborted(scope), ended.prints);
      return outcomeOf(ended);
    } catch (error) {
      if (scope.signal.aborted) return failed(whyAborted(scope), "");
      scope.log.warn({ tool: call.tool.name, error }, "a code tool could not be started");
      return failed("code tool could not be started in the sandbox", "");
    }
  }
}

/** A child that ends without reading its input is no fault of ours: its exit says what happened. */
async function feed(stdin: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch {
    await writer.abort().catch(() => {});
  }
}

function whyAborted({ signal, timeoutMs }: ToolScope): string {
  return signal.reason instanceof RunTimedOut
    ? `code tool timed out after ${timeoutMs}ms`
    : "code tool was aborted";
}
