/**
 * `@ambit/sandbox-docker/testing`: what the conformance kit needs to know about containers. Only for tests and `ambit
 * verify`: it needs `@ambit/testkit`, and the plugin itself doesn't import it.
 */
import type { SandboxBackend } from "@ambit/core/plugin";
import { type Control, operatorControl } from "@ambit/testkit";
import { DockerSandbox } from "../backend.js";

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
export function exemptFor(runtime: string | undefined): Readonly<Record<string, string>> {
  return runtime === "runsc" ? { ...always, ...ofGvisor } : always;
}

/** The unconfined control; undefined for another backend. */
export function control(backend: SandboxBackend): Control | undefined {
  if (!(backend instanceof DockerSandbox)) return undefined;
  return { ...operatorControl(backend), exempt: exemptFor(backend.runtime) };
}

export {
  type DockerMutantRow,
  isNoticed,
  renderDockerMutants,
  runDockerMutants,
} from "./mutation/run-mutants.js";
