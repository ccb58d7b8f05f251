export {
  counters,
  durationBuckets,
  gauges,
  histograms,
  type Measurement,
  type Metric,
  type MetricChange,
} from "./definitions.js";
export { FigureObserver, measure } from "./figures.js";
