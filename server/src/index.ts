/** For a configuration module, and for a program that embeds the server. */
export { type Environment, environmentSchema, takeEnvironment } from "./configuration/environment.js";
export type { Overrides, Settings } from "./configuration/load.js";
export { ConfigurationInvalid } from "./configuration/problems.js";
export {
  type Configuration,
  type ConfigurationInput,
  configurationJsonSchema,
  configurationSchema,
  defineConfiguration,
  type LogLevel,
} from "./configuration/schema.js";
export { type RunningServer, startServer } from "./http/listen.js";
export { openApiDocument } from "./http/routes.js";
export { type Ambit, type OpenAmbitOptions, openAmbit } from "./open.js";
