import "reflect-metadata";

/** What a server, a command line or an embedding program imports. Plugin authors use `@ambit/core/plugin`. */
export * from "./boundary.js";
export * from "./contract/index.js";
export * from "./errors.js";
export * from "./plan/index.js";
export { HomeMissing, stateFolder, userFolder } from "./plugin/folders.js";
export type {
  ActorGap,
  Dialect,
  Difference,
  ForeignEnvironment,
  HiddenCredential,
  Log,
  Rootfs,
} from "./plugin/index.js";
export * from "./registry/index.js";
