export * from "./configuration.js";
export type { ImportPlugin, LoadedPlugin } from "./load.js";
export { type ActorDescription, Registry } from "./registry.js";
