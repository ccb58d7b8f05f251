import type { OwnTools, ToolClass } from "@ambit/core/plugin";

/** What a tool of the agent's own does: as its profile says, else as the agent says of the call (ACP's `ToolKind`). */
export function toolClassOf(
  name: string,
  kind: string | undefined,
  ownTools: OwnTools,
): ToolClass | undefined {
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
