export {
  type ImportPlugin,
  isPlugin,
  type LoadedPlugin,
  type PluginEntry,
  PluginNotFound,
  type ProbeSettings,
  pluginEntriesSchema,
  probeSettingsSchema,
  settingsProblems,
} from "./load.js";
export type { NamedOffer } from "./registrar.js";
export { Registry } from "./registry.js";
