export * from "./candidates.js";
export { carriedBy, type PlannedGateway } from "./choose-gateway.js";
export * from "./gaps.js";
export * from "./plan.js";
export * from "./receipt.js";
export * from "./requirements.js";
export { stillVisible } from "./secrets-inside.js";
