import type { Verification } from "@ambit/attacks";

const ownKernel = "gVisor provides its own kernel, so what is created there is inside the sandbox too";

const always = {
  "filesystem.workspace-only/set-id":
    "the workspace is a volume in a folder that only root on the engine's host can enter, and inside no program gains privileges",
};
const ofGvisor = {
  "network.deny/io-uring": ownKernel,
  "process.contained/own-user-namespace": ownKernel,
  "filesystem.workspace-only/exchange-under-the-runner":
    "gVisor's renameat2 doesn't support RENAME_EXCHANGE, so two files can't be exchanged inside",
};

/** Why an attack, by its id, breaks no promise of containers with this runtime. */
export function exemptFor(runtime: string | undefined): NonNullable<Verification["exempt"]> {
  return runtime === "runsc" ? { ...always, ...ofGvisor } : always;
}
