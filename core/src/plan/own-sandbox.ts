import type { Boundary } from "../boundary/index.js";
import type { Gap } from "../contract/index.js";
import type { HiddenCredential, SandboxBackend } from "../plugin/index.js";
import type { Probed } from "./candidates.js";
import { gapsOf } from "./gaps.js";
import { ofBoundary } from "./requirements.js";
import { hidingGaps } from "./secrets.js";

/** A further sandbox, for a program of Ambit's own such as git. Nothing of the agent's is in it. */
export interface OwnSandbox {
  /** What asks for it: `workspace.sources[0]`. */
  readonly subject: string;
  /**
   * Whose it may be: the run's backend's only, since its files must be of use in the agent's sandbox; or another's, where the
   * run's can't give it this boundary.
   */
  readonly backend: "run" | "any";
  readonly boundary: Boundary;
  readonly secrets: readonly HiddenCredential[];
}

const onHostFiles = {
  capability: "filesystem.workspace-only",
  reason: 'filesystem is "on", and its sandboxes have the files of this host',
  fix: 'set sandboxPermission.filesystem to "workspace", or name a sandbox with an image',
} as const;

/**
 * The backend that opens it: the run's if that covers it; else, where it may be another's, the first that does. Else what the
 * run's doesn't cover. Pure.
 *
 * @param all that the caller may use.
 */
export function chooseOwn(
  own: OwnSandbox,
  run: Probed<SandboxBackend>,
  all: readonly Probed<SandboxBackend>[],
): { readonly chosen: Probed<SandboxBackend> } | { readonly gaps: readonly Gap[] } {
  const gaps = ownGaps(own, run);
  if (gaps.length === 0) return { chosen: run };
  if (own.backend === "run") return { gaps };
  const other = all.find((one) => one !== run && ownGaps(own, one).length === 0);
  if (other !== undefined) return { chosen: other };
  return { gaps: gaps.map((gap) => ({ ...gap, fix: `${gap.fix}; ${anotherFix}` })) };
}

/** Whether a plan lacks a backend for a sandbox that needn't be of the run's. Pure. */
export function lacksBackend(
  { gaps }: { readonly gaps: readonly Gap[] },
  own: readonly OwnSandbox[],
): boolean {
  const subjects = own.filter(({ backend }) => backend === "any").map(({ subject }) => subject);
  return gaps.some(({ subject = "" }) => subjects.includes(subject));
}

const anotherFix =
  "or add a backend that covers it to the configuration, such as @ambit/sandbox-local: it needn't be the run's";

/** What the backend doesn't cover of it. Pure. */
export function ownGaps(
  { subject, boundary, secrets }: OwnSandbox,
  probed: Probed<SandboxBackend>,
): readonly Gap[] {
  const required = ofBoundary(boundary);
  const { actor } = probed;
  const isOnHost = boundary.filesystem.mode === "on" && (actor.rootfs ?? "host") === "host";
  return [
    ...(isOnHost ? [{ actor: actor.name, subject, ...onHostFiles }] : []),
    ...gapsOf({ boundary, required }, { probed, use: undefined, binding: required, subject }),
    ...hidingGaps({ boundary, required }, probed, secrets).map((gap) => ({ ...gap, subject })),
  ];
}
