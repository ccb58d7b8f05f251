import type { OwnTools, PermissionQuestion, ToolClass } from "@ambit/core/plugin";
import type { DescribedCall } from "./tool-calls.js";

/** The question to the run. An input that the agent doesn't send stays undefined: it isn't known to be empty. */
export function questionOf(toolCallId: string, call: DescribedCall, ownTools: OwnTools): PermissionQuestion {
  const { name, server, input, readOnly, kind, changes, locations } = call;
  const toolClass = server === undefined ? toolClassOf(name, kind, ownTools) : undefined;
  return {
    toolCallId,
    toolName: name,
    input,
    ...(server === undefined ? {} : { server }),
    ...(readOnly ? { readOnly } : {}),
    ...(toolClass === undefined ? {} : { toolClass }),
    ...(changes.length === 0 ? {} : { changes }),
    ...(locations.length === 0 ? {} : { locations }),
  };
}

/** What one of the agent's own tools does: according to its profile, else to the call (ACP's `ToolKind`). */
function toolClassOf(name: string, kind: string | undefined, ownTools: OwnTools): ToolClass | undefined {
  const known = Object.hasOwn(ownTools, name) ? ownTools[name] : undefined;
  return known === "other" ? undefined : (known ?? classByKind[kind ?? ""]);
}

const classByKind: Readonly<Record<string, ToolClass>> = {
  execute: "shell",
  edit: "edit",
  delete: "edit",
  move: "edit",
  read: "read",
  search: "read",
  fetch: "fetch",
};
