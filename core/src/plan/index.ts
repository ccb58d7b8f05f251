export * from "./candidates.js";
export { carriedBy, isSameImage, type PlannedGateway } from "./choose.js";
export { boundaryGaps, readabilityIn, requiredPathsOf } from "./gaps.js";
export { lacksBackend, type OwnSandbox } from "./own-sandbox.js";
export * from "./plan.js";
export {
  asPluginError,
  callPlugin,
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
export {
  type BoundedRequest,
  boundedRequest,
  ofBoundary,
  type Requirement,
  requirementsOf,
} from "./requirements.js";
export { stillVisible } from "./secrets.js";
