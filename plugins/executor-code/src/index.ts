import { definePlugin } from "@ambit/core/plugin";
import { configSchema } from "./config.js";
import { CodeExecutor } from "./executor.js";

export { CodeExecutor } from "./executor.js";

export default definePlugin({
  name: "executor-code",
  api: 1,
  config: configSchema,
  register: ({ add }) => add("executor", CodeExecutor),
});
