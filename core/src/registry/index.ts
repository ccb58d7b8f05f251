export * from "./configuration.js";
export { settingsProblems } from "./configuration.js";
export { type ImportPlugin, type LoadedPlugin, PluginNotFound } from "./load.js";
export type { NamedOffer } from "./registrar.js";
export { Registry } from "./registry.js";
