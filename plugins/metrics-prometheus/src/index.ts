import { definePlugin } from "@ambit/core/plugin";
import { durationBuckets } from "@ambit/metrics";
import { z } from "zod";
import { PrometheusObserver } from "./observer.js";

export { PrometheusObserver } from "./observer.js";

export const configSchema = z.strictObject({
  /** Upper bounds in seconds of the buckets that durations are counted in. */
  buckets: z
    .array(z.number().positive())
    .min(1)
    .max(50)
    .default([...durationBuckets]),
});

export default definePlugin({
  name: "metrics-prometheus",
  api: 1,
  config: configSchema,
  register: (registrar, { buckets }) => registrar.add("observer", new PrometheusObserver(buckets)),
});
