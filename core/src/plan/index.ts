export * from "./candidates.js";
export { carriedBy, isSameImage, type PlannedGateway } from "./choose.js";
export {
  boundaryGaps,
  lacksBackend,
  type OwnSandbox,
  readabilityIn,
  requiredPathsOf,
  stillVisible,
} from "./gaps.js";
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
  pluginReturns,
  rememberOrigin,
  shapeProblems,
} from "./plugin-call.js";
export {
  type BoundedRequest,
  boundedRequest,
  ofBoundary,
  type Requirement,
  requirementsOf,
} from "./requirements.js";
