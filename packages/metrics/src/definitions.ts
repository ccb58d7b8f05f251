/** A metric with its name in OpenTelemetry. */
export interface Metric {
  readonly name: string;
  readonly description: string;
  /** The unit in UCUM: `s`. Default: none. */
  readonly unit?: string;
  /** No label has a value that a caller or an agent chooses freely, since each value would permanently be its own series. */
  readonly labels: readonly string[];
}

const counter = <const Labels extends readonly string[]>(
  name: string,
  description: string,
  ...labels: Labels
) => ({ name, description, labels });
const histogram = <const Labels extends readonly string[]>(
  name: string,
  description: string,
  ...labels: Labels
) => ({ name, description, labels, unit: "s" });

/** They only grow. */
export const counters = {
  runs: counter(
    "ambit.runs",
    "Runs that have ended, by outcome: ok, paused, cancelled, or a failure's code.",
    ...(["outcome", "harness", "sandbox"] as const),
  ),
  refused: counter("ambit.requests.refused", "Requests that started no run, by their error's code.", "code"),
  missing: counter(
    "ambit.capability.refusals",
    "Refused requests, by each capability that some actor could not guarantee.",
    "capability",
  ),
  toolCalls: counter("ambit.tool.calls", "Tool calls that have ended.", "outcome"),
  modelRequests: counter(
    "ambit.model.requests",
    "Requests through the model gateway, by HTTP status.",
    "status",
  ),
  tokens: counter("ambit.tokens", "Tokens, as the provider or the agent counts them.", "type", "harness"),
  cost: counter("ambit.cost_usd", "US dollars, of models that have a price.", "harness"),
  decisions: counter(
    "ambit.boundary.decisions",
    "Connections that a boundary let through or refused.",
    "allowed",
  ),
  prewarmClaims: counter(
    "ambit.prewarm.claims",
    "Runs of an agent that is started ahead, by outcome: hit, miss (none fitted), refused (it had done something).",
    ...(["outcome", "harness"] as const),
  ),
  posted: counter(
    "ambit.webhook.attempts",
    "Webhook messages that were posted, by outcome.",
    ...(["outcome", "event"] as const),
  ),
} satisfies Readonly<Record<string, Metric>>;

/** Durations in seconds. */
export const histograms = {
  runSeconds: histogram("ambit.run.duration", "From admission to result.", "harness"),
  stageSeconds: histogram("ambit.run.stage.duration", "Stages of a run.", "stage"),
  toolSeconds: histogram("ambit.tool.call.duration", "Tool calls, from the agent's call to its result."),
} satisfies Readonly<Record<string, Metric>>;

/** The present state. */
export const gauges = {
  active: counter("ambit.runs.active", "Runs in progress."),
  sessions: counter("ambit.sessions", "Open sessions, those of runs under way included."),
  processes: counter("ambit.processes", "Processes in the sandboxes of open sessions."),
  prewarmed: counter("ambit.prewarm.waiting", "Agents that were started ahead and wait for a run."),
  queued: counter("ambit.runs.queued", "Detached runs that wait for a place, over all replicas."),
  deliveries: counter("ambit.webhook.deliveries", "Stored webhook messages, over all replicas.", "state"),
  probeAge: histogram("ambit.probe.age", "Since the actor was last probed.", "kind", "actor"),
  proven: counter(
    "ambit.capability.proven",
    "1 for a capability that was proven on this host, 0 for one that was not.",
    ...(["kind", "actor", "capability"] as const),
  ),
} satisfies Readonly<Record<string, Metric>>;

type LabelsOf<Given extends Metric> = Readonly<Record<Given["labels"][number], string>>;

/** One change of a counter or histogram. */
export type MetricChange =
  | {
      [Key in keyof typeof counters]: {
        readonly counter: Key;
        readonly by: number;
        readonly labels: LabelsOf<(typeof counters)[Key]>;
      };
    }[keyof typeof counters]
  | {
      [Key in keyof typeof histograms]: {
        readonly histogram: Key;
        readonly seconds: number;
        readonly labels: LabelsOf<(typeof histograms)[Key]>;
      };
    }[keyof typeof histograms];

/** One value of a gauge. */
export type Measurement = {
  [Key in keyof typeof gauges]: {
    readonly gauge: Key;
    readonly value: number;
    readonly labels: LabelsOf<(typeof gauges)[Key]>;
  };
}[keyof typeof gauges];

/** Upper bounds in seconds of the buckets that durations are counted in, unless a plugin's configuration has others. */
export const durationBuckets: readonly number[] = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
