import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import protobuf from "protobufjs";

const root = new protobuf.Root();
root.resolvePath = (_origin, target) => new URL(`../proto/${target}`, import.meta.url).pathname;
root.loadSync("opentelemetry/proto/collector/trace/v1/trace_service.proto");
const requests = root.lookupType("opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest");

/** A span as it arrived. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
  readonly status: { readonly code?: string; readonly message?: string };
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>> & {
    readonly arrayValue?: { readonly values: readonly Readonly<Record<string, unknown>>[] };
  };
}

/** A collector of traces on loopback, which decodes by the protocol's own definitions. */
export class Collector implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly resources: Readonly<Record<string, unknown>>[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  readonly paths: string[] = [];
  /** Status of its answers. */
  status = 200;
  /** Body of its answers. Default: empty, which accepts all. */
  answer: Uint8Array | string = "";
  readonly #server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces);
    this.headers.push(request.headers);
    this.paths.push(request.url ?? "");
    if (this.status === 200)
      this.#take(request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body);
    response.writeHead(this.status, { "content-type": "application/x-protobuf" }).end(this.answer);
  });

  static async start(): Promise<Collector> {
    const collector = new Collector();
    collector.#server.listen(0, "127.0.0.1");
    await once(collector.#server, "listening");
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get port(): number {
    // A TCP server that listens has one.
    return (this.#server.address() as AddressInfo).port;
  }

  named(name: string): ReceivedSpan {
    const found = this.spans.find((span) => span.name === name);
    if (found === undefined)
      throw new Error(`no span ${name}: ${this.spans.map((one) => one.name).join(", ")}`);
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(body: Buffer): void {
    const decoded = requests.toObject(requests.decode(body), { enums: String, longs: String, bytes: String });
    for (const { resource, scopeSpans } of decoded.resourceSpans) {
      this.resources.push(flat(resource.attributes));
      for (const { spans } of scopeSpans) {
        for (const span of spans) {
          this.spans.push({
            ...span,
            traceId: hex(span.traceId),
            spanId: hex(span.spanId),
            parentSpanId: hex(span.parentSpanId),
            attributes: flat(span.attributes),
            events: (span.events ?? []).map((event: { name: string; attributes?: KeyValue[] }) => ({
              name: event.name,
              attributes: flat(event.attributes),
            })),
            status: span.status ?? {},
          });
        }
      }
    }
  }
}

function hex(base64: string | undefined): string {
  return Buffer.from(base64 ?? "", "base64").toString("hex");
}

function flat(attributes: readonly KeyValue[] = []): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.arrayValue === undefined
        ? Object.values(value)[0]
        : value.arrayValue.values.map((one) => Object.values(one)[0]),
    ]),
  );
}
