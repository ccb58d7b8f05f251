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

/** What the sandbox says of one credential. Whether it does so on this host is for its claim and probe to say. Pure. */
export function hidingOf(
  sandbox: SandboxBackend | undefined,
  credential: HiddenCredential,
  boundary: Boundary,
): Hiding {
  if (sandbox?.hides === undefined) return noneHidden;
  return asked(sandbox, "hides", () => sandbox.hides?.(credential, boundary)) ?? noneHidden;
}

/** The request's `credentials` that this sandbox can't keep outside: they are never put inside instead. Pure. */
export function credentialGaps(
  request: RunRequest,
  probed: Probed<SandboxBackend>,
  boundary: Boundary,
  required: readonly Requirement[],
): readonly Gap[] {
  const capability = "secrets.hidden";
  const unproven = whyUnproven(probed, capability);
  // Where the boundary asks for it too, that gap has been found already.
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
 * What the sandbox is given to hide: the request's `credentials`, and the agent's under `secrets: "hidden"`. Pure.
 *
 * @param carried names of the agent's that a model gateway keeps outside.
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

/** Why the sandbox doesn't hide a credential of the agent's that could be hidden; undefined when there is no more to say. */
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
