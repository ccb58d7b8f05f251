import type { Boundary } from "../boundary/index.js";
import type { Gap } from "../contract/index.js";
import type { HiddenCredential, SandboxBackend } from "../plugin/index.js";
import type { Probed } from "./candidates.js";
import { gapsOf } from "./gaps.js";
import { ofBoundary } from "./requirements.js";
import { hidingGaps } from "./secrets.js";

/** A further sandbox of the run's backend, for a program of Ambit's own such as git. Nothing of the agent's is in it. */
export interface OwnSandbox {
  /** What asks for it: `workspace.sources[0]`. */
  readonly subject: string;
  readonly boundary: Boundary;
  readonly secrets: readonly HiddenCredential[];
}

const onHostFiles = {
  capability: "filesystem.workspace-only",
  reason: 'filesystem is "on", and its sandboxes have the files of this host',
  fix: 'set sandboxPermission.filesystem to "workspace", or name a sandbox with an image',
} as const;

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
