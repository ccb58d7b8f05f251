/** What a store of runs implements: for the authors of its plugin, and for those who use one. */
export type { Backlog, SessionUse } from "@ambit/core/plugin";
export { answering, askStore } from "./answering.js";
export { openedStore } from "./opened-store.js";
export * from "./run.js";
export * from "./shared.js";
export * from "./states.js";
export * from "./store.js";
