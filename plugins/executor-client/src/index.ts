import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";
import { clientExecutor } from "./executor.js";

export { clientExecutor } from "./executor.js";

export default definePlugin({
  name: "executor-client",
  api: 1,
  config: z.strictObject({}),
  register: (registrar) => registrar.add("executor", clientExecutor),
});
