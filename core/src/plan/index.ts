export * from "./candidates.js";
export { isSameImage } from "./choose.js";
export { carriedBy, type PlannedGateway } from "./choose-gateway.js";
export { boundaryGaps } from "./gaps.js";
export { lacksBackend, type OwnSandbox } from "./own-sandbox.js";
export * from "./plan.js";
export {
  callPure,
  checkedReturn,
  inOffer,
  offerTitle,
  offerUnderWay,
  ofOffer,
  originOf,
  outsideOffers,
  type PluginOffer,
  type PluginOrigin,
  rememberOrigin,
  shapeProblems,
} from "./plugin-call.js";
export { pluginReturns } from "./plugin-returns.js";
export { type RunFacts, receiptOf } from "./receipt.js";
export { readabilityIn, requiredPathsOf } from "./required-paths.js";
export {
  type BoundedRequest,
  boundedRequest,
  ofBoundary,
  type Requirement,
  requirementsOf,
} from "./requirements.js";
export { stillVisible } from "./secrets.js";
