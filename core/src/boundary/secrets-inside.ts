import type { Gap, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type { Part, PlannableExecutor, PlannableHarness, PlannableToolSource } from "./cast.js";
import type { Probed } from "./coverage.js";
import type { Requirement } from "./requirements.js";

/** Who could carry a credential of the request into the sandbox. */
interface Carriers {
  readonly harness: Probed<PlannableHarness> | undefined;
  readonly executors: readonly Part<PlannableExecutor, ToolSpec>[];
  readonly toolSources: readonly Part<PlannableToolSource, McpServer>[];
}

const cure = 'leave the values out, or set sandboxPermission.secrets to "visible"';

/**
 * Gaps of `secrets.hidden` that the request makes itself: what it has put into the sandbox can be read there,
 * whatever the sandbox enforces. Found here, so that no plugin has to remember it. Pure.
 */
export function secretsInside(
  request: RunRequest,
  { harness, executors, toolSources }: Carriers,
  required: readonly Requirement[],
): readonly Gap[] {
  if (!required.some(({ capability }) => capability === "secrets.hidden")) return [];
  const visible = harness?.actor.visibleCredentials(request) ?? [];
  return [
    ...(harness === undefined || visible.length === 0
      ? []
      : [gap(harness.actor.name, `${visible.join(", ")} can be read in the sandbox`)]),
    ...executors.flatMap(({ probed: { actor }, uses }) =>
      actor.site === "sandbox" ? uses.flatMap(({ name, env }) => valuesInside(actor.name, name, env)) : [],
    ),
    ...toolSources.flatMap(({ probed: { actor }, uses }) =>
      actor.site === "sandbox"
        ? uses.flatMap(({ name, connection }) =>
            connection.type === "stdio" ? valuesInside(actor.name, name, connection.env) : [],
          )
        : [],
    ),
  ];
}

function valuesInside(
  actor: string,
  subject: string,
  env: Readonly<Record<string, string>> | undefined,
): readonly Gap[] {
  const names = Object.keys(env ?? {});
  if (names.length === 0) return [];
  return [{ ...gap(actor, `the request puts ${names.join(", ")} of its env into the sandbox`), subject }];
}

function gap(actor: string, reason: string): Gap {
  return { actor, capability: "secrets.hidden", reason, cure };
}
