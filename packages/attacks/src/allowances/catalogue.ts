import type { Capability } from "@ambit/core/plugin";
import type { Allowance, NonEmptyArray } from "../attacks/attack.js";
import { filesystemAllowances } from "./filesystem.js";
import { inboundAllowances } from "./inbound.js";
import { networkAllowances } from "./network.js";
import { processAllowances } from "./process.js";
import { resourcesAllowances } from "./resources.js";

/** What must still work under each capability: a sandbox that allows nothing fulfils none. */
export const allowances: Readonly<Record<Capability, NonEmptyArray<Allowance>>> = {
  ...networkAllowances,
  ...filesystemAllowances,
  ...processAllowances,
  ...resourcesAllowances,
  ...inboundAllowances,
};
