import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";
import { MetricsObserver } from "./observer.js";

export { MetricsObserver } from "./observer.js";

export const configSchema = z.strictObject({
  /** Upper bounds in seconds of the buckets that durations are counted in. */
  buckets: z
    .array(z.number().positive())
    .min(1)
    .max(50)
    .default([0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]),
});

export default definePlugin({
  name: "metrics-prometheus",
  api: 1,
  config: configSchema,
  register: (registrar, { buckets }) => registrar.add("observer", new MetricsObserver(buckets)),
});
