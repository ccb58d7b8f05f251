export type Attributes = Readonly<Record<string, unknown>>;

/** A span as it arrived. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: string; readonly message?: string };
  readonly resource: Attributes;
  readonly scope: ReceivedScope;
}

export interface ReceivedScope {
  readonly name?: string;
  readonly version?: string;
  readonly schemaUrl: string | undefined;
  /** Of the resource. */
  readonly resourceSchemaUrl: string | undefined;
}

/** One data point. */
export interface ReceivedPoint {
  readonly metric: string;
  readonly unit: string;
  readonly kind: "sum" | "gauge" | "histogram";
  readonly attributes: Attributes;
  /** Of a histogram: its count. */
  readonly value: number;
  readonly resource: Attributes;
}

export interface ReceivedLog {
  readonly body: unknown;
  readonly severity: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

type Plain = Readonly<Record<string, unknown>>;

export function spansOf(request: Plain): readonly ReceivedSpan[] {
  return groups(request, "resourceSpans", "scopeSpans", "spans").map(({ item, resource, scope }) => ({
    traceId: text(item.traceId),
    spanId: text(item.spanId),
    parentSpanId: text(item.parentSpanId),
    ...(item.traceState === undefined ? {} : { traceState: text(item.traceState) }),
    name: text(item.name),
    kind: text(item.kind),
    startTimeUnixNano: text(item.startTimeUnixNano),
    endTimeUnixNano: text(item.endTimeUnixNano),
    attributes: flat(item.attributes),
    events: list(item.events).map((event) => ({
      name: text(event.name),
      attributes: flat(event.attributes),
    })),
    links: list(item.links).map((link) => ({ traceId: text(link.traceId), spanId: text(link.spanId) })),
    status: isPlain(item.status) ? item.status : {},
    resource,
    scope,
  }));
}

export function pointsOf(request: Plain): readonly ReceivedPoint[] {
  return groups(request, "resourceMetrics", "scopeMetrics", "metrics").flatMap(({ item, resource }) =>
    (["sum", "gauge", "histogram"] as const).flatMap((kind) => {
      const data = item[kind];
      if (!isPlain(data)) return [];
      return list(data.dataPoints).map((point) => ({
        metric: text(item.name),
        unit: text(item.unit),
        kind,
        attributes: flat(point.attributes),
        value: Number(point.asDouble ?? point.asInt ?? point.count ?? Number.NaN),
        resource,
      }));
    }),
  );
}

export function logsOf(request: Plain): readonly ReceivedLog[] {
  return groups(request, "resourceLogs", "scopeLogs", "logRecords").map(({ item, resource }) => ({
    body: isPlain(item.body) ? Object.values(item.body)[0] : undefined,
    severity: text(item.severityText),
    traceId: text(item.traceId),
    spanId: text(item.spanId),
    attributes: flat(item.attributes),
    resource,
  }));
}

function groups(request: Plain, ofResource: string, ofScope: string, items: string) {
  return list(request[ofResource]).flatMap((group) => {
    const resource = isPlain(group.resource) ? flat(group.resource.attributes) : {};
    return list(group[ofScope]).flatMap((part) => {
      const { scope: given = {}, schemaUrl } = part;
      const scope: ReceivedScope = {
        ...(isPlain(given) ? { name: text(given.name), version: text(given.version) } : {}),
        schemaUrl: schemaUrl === undefined ? undefined : text(schemaUrl),
        resourceSchemaUrl: group.schemaUrl === undefined ? undefined : text(group.schemaUrl),
      };
      return list(part[items]).map((item) => ({ item, resource, scope }));
    });
  });
}

function flat(attributes: unknown): Attributes {
  return Object.fromEntries(
    list(attributes).map(({ key, value }) => [text(key), isPlain(value) ? plainValue(value) : undefined]),
  );
}

function plainValue({ arrayValue, ...single }: Plain): unknown {
  if (!isPlain(arrayValue)) return Object.values(single)[0];
  return list(arrayValue.values).map((one) => Object.values(one)[0]);
}

function list(value: unknown): readonly Plain[] {
  return Array.isArray(value) ? value.filter(isPlain) : [];
}

function isPlain(value: unknown): value is Plain {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}
