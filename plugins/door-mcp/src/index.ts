import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { McpDoor } from "./door.js";

export { configSchema, type DoorConfig } from "./config.js";
export { McpDoor } from "./door.js";

export default definePlugin({
  name: "door-mcp",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("door", new McpDoor(config)),
});
