import type {
  PermissionOption,
  RequestPermissionOutcome,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import type { InteractionRequest, RunRequest } from "@ambit/client";
import { kindOf, titleOf } from "./call-title.js";
import { diffOf, locationsOf, shortPath } from "./updates.js";

/** What of the request says when a call is asked about. */
export type AskingParts = Pick<RunRequest, "permissions" | "customTools">;

/** What the user decided about one call. */
export interface Decision {
  readonly approved: boolean;
  /** A tool that is allowed from now on, in this session. Undefined: the decision holds for this call. */
  readonly remembered?: string;
}

/** How the editor asks about a call. Pure. */
export function permissionOf(
  sessionId: string,
  { id, payload = {} }: InteractionRequest,
  folder: string,
  asking: AskingParts,
): RequestPermissionRequest {
  const { toolName = "tool", input, changes, locations, earlierOutcome } = payload;
  const title = titleOf(toolName, input, (path) => shortPath(path, { folder }));
  const note = earlierOutcome === "unknown" ? " (it may have run before: its outcome is unknown)" : "";
  return {
    sessionId,
    toolCall: {
      toolCallId: id,
      title: `${title}${note}`,
      name: toolName,
      kind: kindOf(toolName, input),
      status: "pending",
      rawInput: input,
      ...(changes === undefined ? {} : { content: changes.map((change) => diffOf(change, { folder })) }),
      ...locationsOf(locations, { folder }),
    },
    options: optionsFor(payload, asking),
  };
}

type Payload = NonNullable<InteractionRequest["payload"]>;

/** "Always" is offered where a rule of this session can say so, and nothing of the request says that such calls are asked about. */
function optionsFor(payload: Payload, asking: AskingParts): PermissionOption[] {
  const once: PermissionOption[] = [
    { optionId: "allow", name: "Allow", kind: "allow_once" },
    { optionId: "reject", name: "Reject", kind: "reject_once" },
  ];
  const { toolName } = payload;
  if (toolName === undefined || !mayRemember(payload, asking)) return once;
  const name = `Always allow ${toolName} in this session`;
  return [...once.slice(0, 1), { optionId: "allow_always", name, kind: "allow_always" }, ...once.slice(1)];
}

/** Pure. */
export function mayRemember(
  { toolName, server, used, earlierOutcome }: Payload,
  { permissions, customTools = [] }: AskingParts,
): boolean {
  // The name of a server's tool is no rule's, and the run's budget is no tool.
  if (toolName === undefined || server !== undefined || used !== undefined || earlierOutcome !== undefined)
    return false;
  const isCustom = customTools.some(({ name }) => name === toolName);
  // A rule may name a tool by what it does: `shell`.
  return !isCustom && (permissions?.rules ?? []).every(({ permission }) => permission !== "ask");
}

/** Pure. */
export function decisionOf(outcome: RequestPermissionOutcome, question: InteractionRequest): Decision {
  if (outcome.outcome !== "selected") return { approved: false };
  const { toolName } = question.payload ?? {};
  switch (outcome.optionId) {
    case "allow":
      return { approved: true };
    case "allow_always":
      return { approved: true, ...(toolName === undefined ? {} : { remembered: toolName }) };
    default:
      return { approved: false };
  }
}
