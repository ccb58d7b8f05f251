import type { Verification } from "@ambit/attacks";

/** Why an attack, by its id, breaks no promise of pods. */
export const exempt: NonNullable<Verification["exempt"]> = {
  "filesystem.workspace-only/set-id":
    "the workspace is a volume that only root on the node can enter, and inside no program gains privileges",
};
