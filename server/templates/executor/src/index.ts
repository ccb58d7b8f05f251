import { defineExecutor, definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const timeZones = ["UTC", ...Intl.supportedValuesOf("timeZone")] as const;

/** What a deployer may configure. Mark credentials with `secret()`. */
export const configSchema = z.strictObject({ timeZone: z.enum(timeZones).default("UTC") });

const argumentsSchema = z.object({ timeZone: z.enum(timeZones).optional() });

/** Tools of the kind `sample` tell the time. */
export const makeExecutor = (config: z.output<typeof configSchema>) =>
  defineExecutor({
    kind: "sample",
    // It runs in Ambit's process, which no sandbox confines: a boundary holds only if this executor keeps to it.
    site: "runner",
    // It connects to nothing, opens no file, starts no process and reads no secret. One that does names the domain here, claims
    // what it enforces and proves that in `probe`; without that, a run with a boundary is refused.
    touches: () => [],
    async execute(call) {
      const { success, data } = argumentsSchema.safeParse(call.arguments);
      // A failure is an outcome, which the model reads. An exception would mean that this plugin is broken.
      if (!success) return { status: "failed", output: "There is no such time zone." };
      const { timeZone = config.timeZone } = data;
      return { status: "completed", output: new Date().toLocaleString("en-GB", { timeZone }) };
    },
  });

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("executor", makeExecutor(config)),
});
