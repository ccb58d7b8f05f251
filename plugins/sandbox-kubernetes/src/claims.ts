import { type Capability, capabilities } from "@ambit/core/plugin";

/**
 * What pods may enforce. The probe finds what a cluster can't. No pod has a limit of processes of its own: nodes set one for
 * all their pods.
 */
export const claims: readonly Capability[] = capabilities.filter((one) => one !== "resources.processes");

export const isNetwork = (capability: Capability) => capability.startsWith("network.");
