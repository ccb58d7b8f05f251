import type { OwnTools, PermissionQuestion, ToolClass } from "@ambit/core/plugin";
import type { ToolIdentity } from "../../profiles/profile.js";
import type { ReportedCall } from "./reported-call.js";

/** The question to the run. An input that the agent doesn't send stays undefined: it isn't known to be empty. */
export function questionOf(
  { id, kind, changes, locations }: ReportedCall,
  { name, server, input, readOnly = kind === "read" || kind === "search" }: ToolIdentity,
  ownTools: OwnTools,
): PermissionQuestion {
  return {
    toolCallId: id,
    toolName: name,
    input,
    server,
    readOnly: readOnly || undefined,
    toolClass: server === undefined ? toolClassOf(name, kind, ownTools) : undefined,
    changes: nonEmpty(changes),
    locations: nonEmpty(locations),
  };
}

/** An event and a question leave out a list without entries. */
export function nonEmpty<Item>(items: readonly Item[]): Item[] | undefined {
  return items.length === 0 ? undefined : [...items];
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
