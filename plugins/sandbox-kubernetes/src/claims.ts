import { type Capability, capabilities } from "@ambit/core/plugin";

/** No pod has a limit of processes of its own: nodes set one for all their pods. The runner doesn't connect into pods. */
const beyondPods: readonly Capability[] = ["resources.processes", "inbound.ports"];

/** What pods may enforce. The probe finds what a cluster can't. */
export const claims: readonly Capability[] = capabilities.filter((one) => !beyondPods.includes(one));

export const isNetwork = (capability: Capability) => capability.startsWith("network.");
