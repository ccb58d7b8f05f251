import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { HttpToolSource } from "./http-source.js";
import { StdioToolSource } from "./stdio-source.js";

export { HttpToolSource } from "./http-source.js";
export { StdioToolSource } from "./stdio-source.js";

export default definePlugin({
  name: "mcp-client",
  api: 1,
  config: configSchema,
  register: ({ add, upstreamProxy }, config) => {
    add("toolSource", new HttpToolSource(config, undefined, upstreamProxy));
    add("toolSource", StdioToolSource);
  },
});
