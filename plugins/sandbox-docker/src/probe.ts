import { probeSandboxes, type SandboxOverrides } from "@ambit/attacks/standard-probe";
import { refusedByProfile } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Capability, Finding, SandboxSpec, Scope } from "@ambit/core/plugin";
import { imageStore, makeAuthority } from "@ambit/egress/credentials";
import type { DockerConfig } from "./config.js";
import { fixFor } from "./engine/engine.js";
import { keptCapabilities } from "./open/container-options.js";

/** What every engine covers or mounts read-only unless an option turns that off. A kernel may lack some. */
const kernelPaths = {
  covered: ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/scsi", "/proc/timer_list", "/sys/firmware"],
  readOnly: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/sys"],
};

/** Tries every claim in containers of the engine, next to a control. */
export function probeEngine(
  open: (spec: SandboxSpec, scope: Scope, options: SandboxOverrides) => Promise<RemoteSandbox>,
  config: DockerConfig,
  signal: AbortSignal,
  claims: readonly Capability[],
): Promise<readonly Finding[]> {
  const probe = {
    claims,
    open,
    makeAuthority,
    node: config.bridge.node,
    bounding: keptCapabilities,
    refusedCalls: refusedByProfile,
    kernelPaths,
    closedPaths: [`${config.bridge.folder}/put`, `${imageStore}/put`],
    perToolFix:
      "use an image with `mount` and `setpriv` (util-linux), the runtime runc (gVisor shows every user all arguments) and, on a host with AppArmor, a profile that allows `mount` (sandbox-docker's appArmor)",
    fixFor: (error: unknown, capability: Capability) => fixFor(error, config, capability),
  };
  return probeSandboxes(probe, signal);
}
