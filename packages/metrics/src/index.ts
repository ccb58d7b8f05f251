export {
  counters,
  durationBuckets,
  gauges,
  histograms,
  type Measurement,
  type Metric,
  type MetricChange,
} from "./definitions.js";
export { Figures, measure } from "./figures.js";
