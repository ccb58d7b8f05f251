import type { Capability } from "@ambit/core/plugin";
import type { Allowance, NonEmptyArray } from "../attacks/attack.js";
import { filesystemAllowances } from "./filesystem.js";
import { networkAllowances } from "./network.js";
import { processAllowances } from "./process.js";
import { resourcesAllowances } from "./resources.js";

/** What must still work under each promise: a sandbox that lets nothing be done keeps none. */
export const allowances: Readonly<Record<Capability, NonEmptyArray<Allowance>>> = {
  ...networkAllowances,
  ...filesystemAllowances,
  ...processAllowances,
  ...resourcesAllowances,
};
