export {
  type FileOwner,
  inFolder,
  namesBelow,
  type OpenFolder,
  openBeneath,
  openFolder,
  type PathMapping,
  refusal,
} from "./open-beneath.js";
export { maxReadBytes, SafeSessionFiles, type SessionFile, type SessionFiles } from "./session-files.js";
