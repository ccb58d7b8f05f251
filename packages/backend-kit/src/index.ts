/** What sandbox backends share. */

export * from "@ambit/attacks/probe";
/** The default folder of a backend's data that outlives a run. */
export { stateFolder as defaultDataFolder } from "@ambit/core/plugin";
export * from "./lifetime/reaper.js";
export * from "./lifetime/replica.js";
export * from "./lifetime/sandbox-supply.js";
export * from "./limits.js";
export * from "./network/dial.js";
export * from "./requests.js";
export * from "./seccomp.js";
