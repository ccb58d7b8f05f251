import type { AgentEventOf, ObservedRun, RunResult, Usage } from "@ambit/core/plugin";
import type { AttributeValue } from "./span.js";

type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** Of the whole run. Names beginning with `gen_ai` are OpenTelemetry's semantic conventions for generative AI. */
export function ofRun({ runId, request, harness, sandbox, guarantees }: ObservedRun): Attributes {
  return {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": harness,
    "gen_ai.provider.name": request.modelConnection?.provider,
    "gen_ai.request.model": request.model,
    "gen_ai.conversation.id": request.sessionId,
    "ambit.run.id": runId,
    "ambit.sandbox": sandbox,
    "ambit.guarantees": guarantees.length === 0 ? undefined : guarantees,
  };
}

export function ofResult(result: RunResult): Attributes {
  return {
    "gen_ai.response.model": result.model,
    "gen_ai.response.finish_reasons": result.stopReason === undefined ? undefined : [result.stopReason],
    ...ofUsage(result.usage),
  };
}

export function ofUsage(usage: Usage | undefined): Attributes {
  return {
    "gen_ai.usage.input_tokens": usage?.input,
    "gen_ai.usage.output_tokens": usage?.output,
    "gen_ai.usage.cache_read.input_tokens": usage?.cached,
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

export function ofDecision(decision: AgentEventOf<"boundary_decision">): Attributes {
  return {
    "ambit.decision.target": decision.target,
    "ambit.decision.allowed": decision.allowed,
    "ambit.decision.reason": decision.reason,
    "ambit.decision.count": decision.count,
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

export function messages(role: "user" | "assistant", text: string): string {
  return JSON.stringify([{ role, parts: [{ type: "text", content: text }] }]);
}
