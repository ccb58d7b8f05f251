import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { McpHttpDelivery } from "./delivery.js";

export { configSchema, type McpHttpConfig } from "./config.js";
export { McpHttpDelivery } from "./delivery.js";

export default definePlugin({
  name: "mcp-http",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("delivery", new McpHttpDelivery(config)),
});
