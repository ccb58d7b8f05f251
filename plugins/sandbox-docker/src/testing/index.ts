/**
 * `@ambit/sandbox-docker/testing`: what the conformance kit needs to know of containers. For tests and `ambit verify` alone:
 * needs `@ambit/testkit`, and nothing of the plugin itself imports it.
 */
import type { SandboxBackend } from "@ambit/core/plugin";
import { type Control, operatorControl } from "@ambit/testkit";
import { DockerSandbox } from "../backend.js";

const ownKernel = "the kernel inside is gVisor's own, and what it makes there is inside too";

const always = {
  "filesystem.workspace-only/set-id":
    "the workspace is a volume in a folder that only root of the engine's host enters, and inside no program gains rights",
};
const ofGvisor = {
  "network.deny/io-uring": ownKernel,
  "process.contained/own-user-namespace": ownKernel,
  "filesystem.workspace-only/exchange-under-the-runner":
    "gVisor's renameat2 knows no RENAME_EXCHANGE, so that two files can't change places inside",
};

/** Why an attack, by its id, breaks no promise of containers with a runtime. */
export function exemptFor(runtime: string | undefined): Readonly<Record<string, string>> {
  return runtime === "runsc" ? { ...always, ...ofGvisor } : always;
}

/** The bare control; undefined for another backend. */
export function control(backend: SandboxBackend): Control | undefined {
  if (!(backend instanceof DockerSandbox)) return undefined;
  return { ...operatorControl(backend), exempt: exemptFor(backend.runtime) };
}
