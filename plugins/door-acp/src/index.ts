import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { AcpDoor } from "./door.js";

export { AcpDoor } from "./door.js";

export default definePlugin({
  name: "door-acp",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("door", new AcpDoor(config)),
});
