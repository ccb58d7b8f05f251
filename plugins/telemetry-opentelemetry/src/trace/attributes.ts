import type { AgentEventOf, ObservedRun, RunResult, Usage } from "@ambit/core/plugin";
import type { AttributeValue } from "./span.js";

type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** Of the whole run. Names beginning with `gen_ai` are OpenTelemetry's semantic conventions for generative AI. */
export function ofRun({ runId, request, harness, sandbox, guarantees, model }: ObservedRun): Attributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": harness,
    "gen_ai.provider.name": providerName(request.modelConnection?.provider),
    "gen_ai.request.model": model,
    "gen_ai.conversation.id": request.sessionId,
    "ambit.run.id": runId,
    "ambit.sandbox": sandbox,
    "ambit.guarantees": guarantees.length === 0 ? undefined : guarantees,
  };
}

/** Providers whose name in the conventions differs from the usual one. */
const providerNames: ReadonlyMap<string, string> = new Map([
  ["google", "gcp.gemini"],
  ["gemini", "gcp.gemini"],
  ["vertex", "gcp.vertex_ai"],
  ["vertex_ai", "gcp.vertex_ai"],
  ["bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["mistral", "mistral_ai"],
  ["xai", "x_ai"],
]);

/** A provider as the conventions spell it (`gen_ai.provider.name`); one that they don't know as it is. Pure. */
export function providerName(provider: string | undefined): string | undefined {
  return provider === undefined ? undefined : (providerNames.get(provider.toLowerCase()) ?? provider);
}

/**
 * @param requested the model as its provider knows it: an agent may put the provider's name before it.
 * @param responded what the provider said.
 */
export function ofResult(
  result: RunResult,
  requested: string | undefined,
  responded: string | undefined,
): Attributes {
  const { model, stopReason, usage } = result;
  const isSame = requested !== undefined && model?.endsWith(`/${requested}`) === true;
  return {
    "gen_ai.response.model": responded ?? (isSame ? requested : model),
    "gen_ai.response.finish_reasons": [finishReason(result)],
    "ambit.run.stop_reason": stopReason,
    ...ofUsage(usage),
  };
}

function ofUsage(usage: Usage | undefined): Attributes {
  return {
    "gen_ai.usage.input_tokens": usage?.input,
    "gen_ai.usage.output_tokens": usage?.output,
    "gen_ai.usage.cache_read.input_tokens": usage?.cached,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWritten,
    "gen_ai.usage.reasoning.output_tokens": usage?.reasoning,
    "ambit.usage.cost_usd": usage?.cost,
  };
}

export function ofTool(id: string, name: string | undefined): Attributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": id,
  };
}

export function ofInteraction(id: string, kind: string): Attributes {
  return { "ambit.interaction.id": id, "ambit.interaction.kind": kind };
}

export function ofDecision(decision: AgentEventOf<"boundary_decision">): Attributes {
  return {
    "ambit.decision.target": decision.target,
    "ambit.decision.allowed": decision.allowed,
    "ambit.decision.reason": decision.reason,
    "ambit.decision.count": decision.count,
    ...(decision.failure === undefined ? {} : { "ambit.decision.failure": decision.failure }),
  };
}

/** The last message of the user, in the conventions' form. @param redact takes the run's credentials out. */
export function inputMessages({ request, redact }: ObservedRun): string | undefined {
  const last = request.messages.findLast(({ role }) => role === "user");
  if (last === undefined) return undefined;
  const { content } = last;
  const text = typeof content === "string" ? content : content.map((block) => block.text ?? "").join("\n");
  return messages("user", redact(text));
}

/** @param finishReason of an output message, which must have one. */
export function messages(role: "user" | "assistant", text: string, finishReason?: string): string {
  const finish = finishReason === undefined ? {} : { finish_reason: finishReason };
  return JSON.stringify([{ role, parts: [{ type: "text", content: text }], ...finish }]);
}

/** Why an agent's turn ended, in the conventions' words; a reason that they don't have as it is. Pure. */
export function finishReason({ ok, stopReason }: Pick<RunResult, "ok" | "stopReason">): string {
  if (!ok) return "error";
  switch (stopReason) {
    case undefined:
    case "end_turn":
      return "stop";
    case "max_tokens":
      return "length";
    case "refusal":
      return "content_filter";
    case "paused":
      return "tool_call";
    default:
      return stopReason;
  }
}
