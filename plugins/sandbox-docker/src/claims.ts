import { type Capability, capabilities } from "@ambit/core/plugin";

/** The probe finds what an engine or a runtime can't enforce. */
export const claims: readonly Capability[] = capabilities;
