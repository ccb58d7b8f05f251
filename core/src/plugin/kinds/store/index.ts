export * from "./run.js";
export * from "./shared.js";
export * from "./store.js";
