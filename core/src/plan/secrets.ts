import type { Gap, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type {
  Harness,
  HiddenCredential,
  Hiding,
  SandboxBackend,
  ToolExecutor,
  ToolSource,
} from "../plugin/index.js";
import type { PlannedActor, Probed } from "./candidates.js";
import { whyUnproven } from "./gaps.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";
import type { BoundedRequest } from "./requirements.js";

const capability = "secrets.hidden";

const noneHidden: Exclude<Hiding, true> = {
  reason: "it keeps no credential outside",
  fix: "name a sandbox that does, or remove the credential",
};

/** Gaps of the request's `credentials` that this sandbox can't keep outside. They are never put inside instead. Pure. */
export function credentialGaps(bounded: BoundedRequest, probed: Probed<SandboxBackend>): readonly Gap[] {
  return hidingGaps(bounded, probed, bounded.request.credentials);
}

/** The same of any credentials. Pure. */
export function hidingGaps(
  bounded: Pick<BoundedRequest, "boundary" | "required">,
  probed: Probed<SandboxBackend>,
  credentials: readonly HiddenCredential[],
): readonly Gap[] {
  const unproven = whyUnproven(probed, capability);
  // Where the boundary requires it too, that gap was already found.
  if (unproven !== undefined && isRequired(bounded)) return [];
  const actor = probed.actor.name;
  return credentials.flatMap((credential): Gap[] => {
    const hiding = unproven ?? hidingOf(probed.actor, credential, bounded);
    if (hiding === true) return [];
    const reason = `${credential.name} must stay outside: ${hiding.reason}`;
    return [{ actor, capability, reason, fix: hiding.fix, subject: credential.name }];
  });
}

/** The agent's credentials that only its model needs, and whether the sandbox hides each. */
export interface HideableCredential {
  readonly credential: HiddenCredential;
  readonly hiding: Hiding;
}

/**
 * Of the agent's credentials, those that a sandbox may hide; none unless the boundary says `secrets: "hidden"`. Pure.
 *
 * @param carried names of those that a model gateway keeps outside already.
 */
export function hideableCredentials(
  bounded: BoundedRequest,
  harness: Harness | undefined,
  sandbox: SandboxBackend | undefined,
  carried: readonly string[],
): readonly HideableCredential[] {
  const { request, boundary } = bounded;
  if (boundary.secrets !== "hidden" || harness?.hideableCredentials === undefined) return [];
  return callPure(harness, "hideableCredentials", pluginReturns.hiddenCredentials, () =>
    harness.hideableCredentials?.(request),
  )
    .filter(({ name, hosts }) => hosts.length > 0 && !carried.includes(name))
    .map((credential) => ({ credential, hiding: hidingOf(sandbox, credential, bounded) }));
}

/** Whether the sandbox can hide one credential. Its claim and probe decide whether it does on this host. */
function hidingOf(
  sandbox: SandboxBackend | undefined,
  credential: HiddenCredential,
  { boundary }: Pick<BoundedRequest, "boundary">,
): Hiding {
  if (sandbox?.hides === undefined) return noneHidden;
  return callPure(sandbox, "hides", pluginReturns.hiding, () => sandbox.hides?.(credential, boundary));
}

/** The actors that could carry a credential of the request into the sandbox. */
interface Carriers {
  readonly sandbox: SandboxBackend | undefined;
  readonly harness: Harness | undefined;
  readonly hideable: readonly HideableCredential[];
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
 * Gaps of `secrets.hidden` that the request itself causes: a value that it puts into the sandbox can be read there.
 * Checked here, so that no plugin has to. Pure.
 */
export function secretsInside(bounded: BoundedRequest, carriers: Carriers): readonly Gap[] {
  if (!isRequired(bounded)) return [];
  const values = [
    ...carriers.executors.flatMap(({ probed: { actor }, uses }) =>
      uses.map(({ name, env }) => ({ actor, subject: name, env })),
    ),
    ...carriers.toolSources.flatMap(({ probed: { actor }, uses }) =>
      uses.map(({ name, connection }) => ({
        actor,
        subject: name,
        env: connection.type === "stdio" ? connection.env : undefined,
      })),
    ),
  ];
  return [
    ...agentGaps(bounded.request, carriers),
    ...values.flatMap(({ actor: { name, site }, subject, env = {} }): Gap[] => {
      const names = Object.keys(env);
      if (site !== "sandbox" || names.length === 0) return [];
      const reason = `the request puts ${names.join(", ")} of its env into the sandbox`;
      return [{ actor: name, capability, reason, fix, subject }];
    }),
  ];
}

function agentGaps(
  request: RunRequest,
  { sandbox, harness, hideable, outside, unrouted }: Carriers,
): readonly Gap[] {
  const visible = harness === undefined ? [] : stillVisible(harness, request, outside);
  if (harness === undefined || visible.length === 0) return [];
  const actor = harness.name;
  const reason = `${visible.join(", ")} can be read in the sandbox${unrouted === undefined ? "" : `; ${unrouted}`}`;
  for (const { credential, hiding } of sandbox?.hides === undefined ? [] : hideable) {
    if (hiding === true) continue;
    const why = `${reason} (${credential.name}: ${hiding.reason})`;
    return [{ actor, capability, reason: why, fix: `${hiding.fix}; or ${fix}` }];
  }
  return [{ actor, capability, reason, fix }];
}

/** Names of the credentials that can still be read in the sandbox. */
export function stillVisible(
  harness: Harness,
  request: RunRequest,
  outside: readonly string[],
): readonly string[] {
  return callPure(harness, "visibleCredentials", pluginReturns.names, () =>
    harness.visibleCredentials(request),
  ).filter((name) => !outside.includes(name));
}

function isRequired({ required }: Pick<BoundedRequest, "required">): boolean {
  return required.some((one) => one.capability === capability);
}
