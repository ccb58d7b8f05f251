export {
  codeOf,
  concernsOf,
  inFolder,
  namesBelow,
  type OpenFolder,
  type Ownership,
  openBeneath,
  openFolder,
  type Place,
  refusal,
} from "./open-beneath.js";
export { type KeptFiles, largestRead, type SessionFile, SessionFiles } from "./session-files.js";
