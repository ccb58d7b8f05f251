/** The default folder of a backend's data that outlives a run. */
export { stateFolder as defaultDataFolder } from "@ambit/core/plugin";
