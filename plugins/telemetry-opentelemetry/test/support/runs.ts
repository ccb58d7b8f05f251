import { runRequestSchema } from "@ambit/core/contract";
import type { Log, ObservedRun, RunObserver, RunResult } from "@ambit/core/plugin";

/** A log that keeps what is written to it. */
export function logInto(lines: unknown[]): Log {
  const write = (fields: unknown, message: string) => void lines.push([fields, message]);
  return { debug: write, info: write, warn: write, error: write };
}

export function observed(body: object, lines: unknown[] = []): ObservedRun {
  const request = runRequestSchema.parse({ messages: [{ role: "user", content: "say sk-secret" }], ...body });
  return {
    runId: "run-1",
    request,
    harness: "demo",
    sandbox: "local",
    guarantees: ["network.deny"],
    model: "m-1",
    redact: (text) => text.replaceAll("sk-secret", "[redacted]"),
    log: logInto(lines),
  };
}

export const result: RunResult = {
  ok: true,
  runId: "run-1",
  events: [],
  output: "It is sunny.",
  stopReason: "end_turn",
  model: "m-1",
  usage: { input: 10, cached: 2, output: 5, reasoning: 3, total: 15, cost: 0.25 },
};

/** A run with one call, to all of them: three spans below its own. */
export function playShort(observers: readonly RunObserver[], run: ObservedRun): void {
  for (const observer of observers) {
    const observation = observer.observe(run);
    observation?.entered?.("streaming");
    observation?.happened?.({ type: "tool_call", id: "call-1", name: "look_up" });
    observation?.happened?.({ type: "tool_result", id: "call-1", output: "sunny" });
    observation?.entered?.("closing");
    observation?.ended?.(result);
  }
}
