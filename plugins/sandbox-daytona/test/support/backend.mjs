import { configSchema, DaytonaSandbox } from "../../dist/index.js";

// For a runner in a separate process: the configuration is in the module's address.
const config = configSchema.parse(JSON.parse(new URL(import.meta.url).searchParams.get("config") ?? "{}"));

export default () => new DaytonaSandbox(config);
