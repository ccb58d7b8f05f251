/** Why an attack, by its id, breaks no promise of pods. */
export const exempt = {
  "filesystem.workspace-only/set-id":
    "the workspace is a volume that only root on the node can enter, and inside no program gains privileges",
};
