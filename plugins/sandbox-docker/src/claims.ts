import { type Capability, capabilities } from "@ambit/core/plugin";

/** All but connections of the runner into a container. The probe finds what an engine or a runtime can't enforce. */
export const claims: readonly Capability[] = capabilities.filter((one) => one !== "inbound.ports");
