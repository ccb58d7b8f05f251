import {
  type ActorGap,
  type Boundary,
  type Finding,
  type Issue,
  messageOf,
  type RunRequest,
  RunTimedOut,
  type ToolCall,
  type ToolExecutor,
  type ToolOutcome,
  type ToolScope,
  type ToolUse,
  type UpstreamProxy,
  wholeWords,
} from "@ambit/core/plugin";
import { AddressRefused, type Lookup } from "@ambit/egress";
import {
  adviceIn,
  argumentsOf,
  CallInvalid,
  callContextOf,
  directPosting,
  envelopeOf,
  outcomeOfEnvelope,
  readPath,
  runContextOf,
} from "./call.js";
import type { CallbackConfig } from "./config.js";
import { gapsOfCallback, issuesOfRequest, issuesOfTool } from "./issues.js";
import { type CallbackResponse, NotSent, Outbound, type Posting } from "./outbound.js";

/** Characters of an error's text that are logged. */
const maxExcerptLength = 500;

/** A pure function of a request and something else, computed once for each pair, and forgotten with them. */
class Remembered<Other extends WeakKey, Result extends WeakKey> {
  readonly #compute: (request: RunRequest, other: Other) => Result;
  readonly #results = new WeakMap<RunRequest, WeakMap<Other, Result>>();

  constructor(compute: (request: RunRequest, other: Other) => Result) {
    this.#compute = compute;
  }

  of(request: RunRequest, other: Other): Result {
    let results = this.#results.get(request);
    if (results === undefined) {
      results = new WeakMap();
      this.#results.set(request, results);
    }
    let result = results.get(other);
    if (result === undefined) {
      result = this.#compute(request, other);
      results.set(other, result);
    }
    return result;
  }
}

/** Runs a tool by posting its call to the platform, from the runner. */
export class CallbackExecutor implements ToolExecutor {
  readonly name = "callback";
  readonly kind = "callback";
  readonly site = "runner";
  readonly claims = ["network.allow-host", "network.allow-cidr"] as const;
  readonly #config: CallbackConfig;
  readonly #outbound: Outbound;
  // All tools of a request share one destination: a plan with a thousand tools judges it once.
  readonly #gaps = new Remembered((request, boundary: Boundary) =>
    gapsOfCallback(boundary, request, this.#config),
  );
  readonly #issues = new Remembered(issuesOfRequest);

  constructor(config: CallbackConfig, lookup?: Lookup, upstreamProxy?: UpstreamProxy) {
    this.#config = config;
    this.#outbound = new Outbound(config, lookup, upstreamProxy);
  }

  touches(): readonly ["network"] {
    return ["network"];
  }

  gaps(boundary: Boundary, use: ToolUse): readonly ActorGap[] {
    return this.#gaps.of(use.request, boundary);
  }

  issues(use: ToolUse): readonly Issue[] {
    return [...this.#issues.of(use.request, this.#config), ...issuesOfTool(use)];
  }

  async probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const { probeCallback } = await import("./probe.js");
    return await probeCallback(signal);
  }

  async execute(call: ToolCall, scope: ToolScope): Promise<ToolOutcome> {
    const { name } = call.tool;
    try {
      const posting = postingOf(call, scope);
      const answer = await this.#outbound.send(posting, scope);
      return await outcomeOf(call, posting, answer, scope, this.#config);
    } catch (error) {
      return { status: "failed", output: explain(error, name, scope) };
    }
  }

  /** Closes every connection; open calls fail. Optional for a runner: idle connections keep no process alive. */
  async close(): Promise<void> {
    this.#outbound.close();
  }
}

async function outcomeOf(
  { tool }: ToolCall,
  { url }: Posting,
  answer: CallbackResponse,
  { log }: ToolScope,
  { maxAnswerBytes, maxAnswerValues }: CallbackConfig,
): Promise<ToolOutcome> {
  const failed = (output: string): ToolOutcome => ({
    status: "failed",
    output: `Tool '${tool.name}' failed: ${output}`,
  });
  if (answer.kind === "too_long") {
    return failed(
      `its answer is longer than ${maxAnswerBytes.toLocaleString("en")} bytes (executor-callback's maxAnswerBytes). Request less: filter, paginate or summarise.`,
    );
  }
  if (answer.kind === "rejected") {
    const { status, location } = answer;
    // The rest of the platform's text stays here: it was written for its operators, not for a model.
    const excerpt = wholeWords(answer.body, maxExcerptLength);
    log.warn(
      { tool: tool.name, host: url.host, status, excerpt, location },
      "a callback was answered with an error",
    );
    return failed(
      status >= 300 && status < 400
        ? `HTTP ${status}: the platform answered with a redirect, and redirects are never followed.`
        : `HTTP ${status}${adviceIn(answer.body)}`,
    );
  }
  return tool.call === undefined
    ? outcomeOfEnvelope(tool.name, answer.body, maxAnswerValues)
    : { status: "completed", output: answer.body };
}

function explain(error: unknown, name: string, { signal, log }: ToolScope): string {
  if (signal.aborted) {
    return signal.reason instanceof RunTimedOut
      ? `Tool '${name}' failed: no complete answer in time. ${signal.reason.message}`
      : `Tool '${name}' was cancelled.`;
  }
  if (error instanceof CallInvalid) return `Tool '${name}' failed: ${error.message}.`;
  if (error instanceof NotSent) return `Tool '${name}' was not called: ${error.message}.`;
  log.warn({ tool: name, error: messageOf(error) }, "a callback could not be made");
  if (error instanceof AddressRefused) {
    return `Tool '${name}' failed: the run's boundary refuses its destination. This is not a network fault; trying again won't help.`;
  }
  const code = readPath(error instanceof Error ? { ...error } : {}, "code");
  return `Tool '${name}' failed: the platform could not be reached${typeof code === "string" ? ` (${code})` : ""}.`;
}

function postingOf(call: ToolCall, scope: ToolScope): Posting {
  const { request, traceparent, tracestate, runId, idempotencyKey, fence } = scope;
  const { tool } = call;
  const { toolCallback } = request;
  const { baggage } = request.context?.propagation ?? {};
  if (toolCallback === undefined) throw new CallInvalid("the request has no toolCallback.endpoint");
  const endpoint = new URL(toolCallback.endpoint);
  const runKind = readPath(runContextOf(request), "run.kind");
  const headers = {
    "content-type": "application/json",
    // The client unpacks nothing.
    "accept-encoding": "identity",
    "x-ambit-run-id": runId,
    "idempotency-key": idempotencyKey,
    ...(fence === undefined ? {} : { "x-ambit-fence": String(fence) }),
    ...(toolCallback.authorization === undefined ? {} : { authorization: toolCallback.authorization }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { tracestate }),
    ...(baggage === undefined ? {} : { baggage }),
    ...(typeof runKind === "string" ? { "x-agenta-run-kind": runKind } : {}),
  };
  const context = callContextOf(request, idempotencyKey);
  const input = argumentsOf(tool, call.arguments, context);
  if (tool.call !== undefined) return { ...directPosting(tool.call, endpoint, input, context), headers };
  if (tool.callRef === undefined) throw new CallInvalid("it has neither callRef nor call");
  return {
    url: endpoint,
    method: "POST",
    headers,
    body: envelopeOf(call.id, tool.callRef, input, call.context),
  };
}
