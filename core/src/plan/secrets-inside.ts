import type { Boundary } from "../boundary/index.js";
import type { Gap, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type { Harness, Hiding, SandboxBackend, ToolExecutor, ToolSource } from "../plugin/index.js";
import { asked } from "./asked.js";
import type { PlannedActor, Probed } from "./candidates.js";
import { whyNotHidden } from "./credentials.js";
import type { Requirement } from "./requirements.js";

/** What could carry a credential of the request into the sandbox. */
interface Carriers {
  readonly sandbox: Probed<SandboxBackend> | undefined;
  readonly harness: Probed<Harness> | undefined;
  readonly executors: readonly PlannedActor<ToolExecutor, ToolSpec>[];
  readonly toolSources: readonly PlannedActor<ToolSource, McpServer>[];
  /** Names of credentials that stay outside: the sandbox has placeholders for them, or the gateway keeps them. */
  readonly outside: readonly string[];
  /** Why no model gateway keeps the model's; undefined when one does. */
  readonly unrouted: string | undefined;
}

const fix =
  'leave the values out, name a sandbox that can hide them, or set sandboxPermission.secrets to "visible"';

/**
 * Gaps of `secrets.hidden` that the request itself causes: a value that it puts into the sandbox can be read there. Checked
 * here, so that no plugin has to. Pure.
 */
export function secretsInside(
  request: RunRequest,
  { sandbox, harness, executors, toolSources, outside, unrouted }: Carriers,
  boundary: Boundary,
  required: readonly Requirement[],
): readonly Gap[] {
  if (!required.some(({ capability }) => capability === "secrets.hidden")) return [];
  const visible = harness === undefined ? [] : stillVisible(harness.actor, request, outside);
  return [
    ...(harness === undefined || visible.length === 0
      ? []
      : [
          gap(
            harness.actor.name,
            [`${visible.join(", ")} can be read in the sandbox`, unrouted].filter(Boolean).join("; "),
            whyNotHidden(request, harness.actor, sandbox?.actor, boundary),
          ),
        ]),
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

/** Names of the credentials that can still be read in the sandbox. */
export function stillVisible(
  harness: Harness,
  request: RunRequest,
  outside: readonly string[],
): readonly string[] {
  return asked(harness, "visibleCredentials", () => harness.visibleCredentials(request)).filter(
    (name) => !outside.includes(name),
  );
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

function gap(actor: string, reason: string, why?: Exclude<Hiding, true>): Gap {
  const capability = "secrets.hidden";
  if (why === undefined) return { actor, capability, reason, fix };
  return { actor, capability, reason: `${reason} (${why.reason})`, fix: `${why.fix}; or ${fix}` };
}
