export {
  codeOf,
  inFolder,
  namesBelow,
  type OpenFolder,
  type Ownership,
  openBeneath,
  openFolder,
  refusal,
} from "./open-beneath.js";
export { type KeptFiles, largestRead, type Place, type SessionFile, SessionFiles } from "./session-files.js";
