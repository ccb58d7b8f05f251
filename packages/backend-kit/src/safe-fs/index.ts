export {
  inFolder,
  namesBelow,
  type OpenFolder,
  type Ownership,
  openBeneath,
  openFolder,
  type PathMapping,
  refusal,
} from "./open-beneath.js";
export { maxReadBytes, SafeSessionFiles, type SessionFile, type SessionFiles } from "./session-files.js";
