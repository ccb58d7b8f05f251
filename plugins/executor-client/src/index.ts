import { defineExecutor, definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

/**
 * Tools that the user's browser fulfils. Nothing is executed here: the call is parked, the run puts it to the
 * user, and the answer comes back through the run. Site `caller`: the plan lists it as outside, never refuses it.
 */
export const clientExecutor = defineExecutor({
  kind: "client",
  site: "caller",
  touches: () => [],
  execute: async () => ({ status: "parked", interaction: "client_tool" }),
});

export default definePlugin({
  name: "executor-client",
  api: 1,
  config: z.strictObject({}),
  register: (registrar) => registrar.add("executor", clientExecutor),
});
