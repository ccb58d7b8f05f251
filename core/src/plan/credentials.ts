import type { Boundary } from "../boundary/index.js";
import type { Gap, RunRequest } from "../contract/index.js";
import type { Harness, HiddenCredential, Hiding, SandboxBackend } from "../plugin/index.js";
import { asked } from "./asked.js";
import type { Probed } from "./candidates.js";
import { whyUnproven } from "./gaps.js";
import type { Requirement } from "./requirements.js";

const noneHidden: Hiding = {
  reason: "it keeps no credential outside",
  fix: "name a sandbox that does, or remove the credential",
};

/** Whether the sandbox can hide one credential. Its claim and probe decide whether it does on this host. Pure. */
export function hidingOf(
  sandbox: SandboxBackend | undefined,
  credential: HiddenCredential,
  boundary: Boundary,
): Hiding {
  if (sandbox?.hides === undefined) return noneHidden;
  return asked(sandbox, "hides", () => sandbox.hides?.(credential, boundary)) ?? noneHidden;
}

/** Gaps of the request's `credentials` that this sandbox can't keep outside. They are never put inside instead. Pure. */
export function credentialGaps(
  request: RunRequest,
  probed: Probed<SandboxBackend>,
  boundary: Boundary,
  required: readonly Requirement[],
): readonly Gap[] {
  const capability = "secrets.hidden";
  const unproven = whyUnproven(probed, capability);
  // Where the boundary requires it too, that gap was already found.
  if (unproven !== undefined && required.some((one) => one.capability === capability)) return [];
  const actor = probed.actor.name;
  return request.credentials.flatMap((credential): Gap[] => {
    const hiding = unproven ?? hidingOf(probed.actor, credential, boundary);
    if (hiding === true) return [];
    const reason = `${credential.name} must stay outside: ${hiding.reason}`;
    return [{ actor, capability, reason, fix: hiding.fix, subject: credential.name }];
  });
}

/**
 * The credentials that the sandbox hides: the request's, and under `secrets: "hidden"` the agent's. Pure.
 *
 * @param carried names of the agent's credentials that a model gateway keeps outside.
 */
export function credentialsHidden(
  request: RunRequest,
  harness: Harness | undefined,
  sandbox: SandboxBackend | undefined,
  boundary: Boundary,
  carried: readonly string[],
): readonly HiddenCredential[] {
  return [
    ...request.credentials,
    ...hideableOf(request, harness, boundary).filter(
      (credential) => !carried.includes(credential.name) && hidingOf(sandbox, credential, boundary) === true,
    ),
  ];
}

/** Why the sandbox doesn't hide one of the agent's hideable credentials; undefined when there is no specific reason. */
export function whyNotHidden(
  request: RunRequest,
  harness: Harness,
  sandbox: SandboxBackend | undefined,
  boundary: Boundary,
): Exclude<Hiding, true> | undefined {
  if (sandbox?.hides === undefined) return undefined;
  for (const credential of hideableOf(request, harness, boundary)) {
    const hiding = hidingOf(sandbox, credential, boundary);
    if (hiding !== true) return { reason: `${credential.name}: ${hiding.reason}`, fix: hiding.fix };
  }
  return undefined;
}

function hideableOf(
  request: RunRequest,
  harness: Harness | undefined,
  boundary: Boundary,
): readonly HiddenCredential[] {
  if (boundary.secrets !== "hidden" || harness === undefined) return [];
  const hideable = asked(harness, "hideableCredentials", () => harness.hideableCredentials?.(request) ?? []);
  return hideable.filter(({ hosts }) => hosts.length > 0);
}
