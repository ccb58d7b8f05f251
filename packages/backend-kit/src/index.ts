/** What sandbox backends share. */

export * from "@ambit/attacks/probe";
export * from "./container-gaps.js";
export * from "./lifetime/assignment.js";
export * from "./lifetime/at-exit.js";
export * from "./lifetime/data-folder.js";
export * from "./lifetime/layer-eviction.js";
export * from "./lifetime/lifeline.js";
export * from "./lifetime/ownership.js";
export * from "./lifetime/reaper.js";
export * from "./lifetime/replica.js";
export * from "./lifetime/sandbox-supply.js";
export * from "./lifetime/shape.js";
export * from "./lifetime/warm-pool.js";
export * from "./limits.js";
export * from "./network/dial.js";
export * from "./requests/bounded-agent.js";
export * from "./requests/time-limit.js";
export * from "./seccomp.js";
