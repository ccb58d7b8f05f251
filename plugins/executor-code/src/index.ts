import { definePlugin } from "@ambit/core/plugin";
import { CodeExecutor, configSchema } from "./executor.js";

export { CodeExecutor } from "./executor.js";

export default definePlugin({
  name: "executor-code",
  api: 1,
  config: configSchema,
  register: ({ add }) => add("executor", CodeExecutor),
});
