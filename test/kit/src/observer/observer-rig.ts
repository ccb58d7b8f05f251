import { freshSecret } from "@ambit/attacks";
import type { AgentEvent, ObservedRun, RunObserver, RunResult } from "@ambit/core/plugin";
import { runRequestSchema } from "@ambit/core/plugin";
import { silentLog } from "../stage/kit-scope.js";

/** An observer for one test, and what it has written. */
export interface ObserverRig {
  readonly observer: RunObserver;
  /** All that it wrote, sent or serves: searched for credentials. Called once the observer is closed. */
  written(): Promise<string>;
  close(): Promise<void>;
}

/** A request with a credential, and the run of it. */
export interface SecretRun {
  readonly secret: string;
  readonly run: ObservedRun;
}

export function secretRun(runId: string): SecretRun {
  const secret = freshSecret();
  const request = runRequestSchema.parse({
    harness: "demo",
    runId,
    messages: [{ role: "user", content: `my key is ${secret}` }],
    toolCallback: { endpoint: "https://tools.example", authorization: `Bearer ${secret}` },
    modelConnection: {
      provider: "openai",
      deployment: "direct",
      credentials: [
        { binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: secret, usage: "opaque_http" },
      ],
    },
  });
  const redact = (text: string) => text.replaceAll(secret, "[redacted]");
  const place = { harness: "demo", sandbox: "local", guarantees: ["network.deny"] };
  return { secret, run: { runId, request, ...place, redact, log: silentLog } };
}

/** As a run's reader receives them. */
export const events: readonly AgentEvent[] = [
  { type: "turn", turnId: "t" },
  { type: "thought", text: "hm" },
  { type: "message_start", id: "m" },
  { type: "message_delta", id: "m", delta: "hello" },
  { type: "message_end", id: "m" },
  { type: "tool_call", id: "1", name: "find", input: { query: "x" } },
  { type: "tool_output", id: "1", delta: "a line" },
  { type: "tool_result", id: "1", output: "found" },
  // Neither a name nor a result that follows.
  { type: "tool_call", id: "2" },
  { type: "boundary_decision", target: "example.com:443", allowed: false, reason: "not listed", count: 1 },
  { type: "usage", input: 100, output: 7 },
  { type: "done", stopReason: "end_turn" },
];

export const succeeded = ({ runId }: ObservedRun): RunResult => ({
  ok: true,
  runId,
  output: "hello",
  events: [...events],
  usage: { input: 100, output: 7 },
  stopReason: "end_turn",
});

export const failed = ({ runId }: ObservedRun): RunResult => ({
  ok: false,
  runId,
  events: [],
  error: "The agent ended.",
  failure: { code: "harness_failed", retryable: true },
});
