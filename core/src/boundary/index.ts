export * from "./boundary.js";
export * from "./candidates.js";
export * from "./coverage.js";
export * from "./network/index.js";
export * from "./normalise.js";
export * from "./plan.js";
export * from "./receipt.js";
export * from "./requirements.js";
export { stillVisible } from "./secrets-inside.js";
