export { callPure } from "./call-pure.js";
export * from "./candidates.js";
export { carriedBy, type PlannedGateway } from "./choose-gateway.js";
export * from "./plan.js";
export { type RunFacts, receiptOf } from "./receipt.js";
export { type BoundedRequest, boundedRequest, type Requirement, requirementsOf } from "./requirements.js";
export { stillVisible } from "./secrets.js";
