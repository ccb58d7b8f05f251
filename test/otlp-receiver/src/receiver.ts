import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import {
  Server as GrpcServer,
  type Metadata,
  ServerCredentials,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { decoded, type Signal, signals } from "./definitions.js";
import {
  logsOf,
  pointsOf,
  type ReceivedLog,
  type ReceivedPoint,
  type ReceivedSpan,
  spansOf,
} from "./received.js";

/** Receives on loopback, at one port for HTTP and one for gRPC. */
export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly points: ReceivedPoint[] = [];
  readonly logs: ReceivedLog[] = [];
  /** Of requests over HTTP. */
  readonly headers: IncomingHttpHeaders[] = [];
  readonly paths: string[] = [];
  /** Of requests over gRPC. */
  readonly metadata: Metadata[] = [];
  /** Status of its answers over HTTP; over gRPC, any but 200 is UNAVAILABLE. */
  status = 200;
  /** Body of its answers over HTTP. Default: empty, which accepts all. */
  answer: Uint8Array | string = "";
  #http: Server | undefined;
  #grpc: GrpcServer | undefined;
  #port = 0;
  #grpcPort = 0;

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await receiver.listen();
    return receiver;
  }

  /** At the same ports as before, if it listened before. */
  async listen(): Promise<void> {
    const http = createServer((request, response) => void this.#received(request, response));
    http.listen(this.#port, "127.0.0.1");
    await once(http, "listening");
    // A TCP server that listens has one.
    this.#port = (http.address() as AddressInfo).port;
    this.#http = http;
    this.#grpc = this.#grpcServer();
    this.#grpcPort = await bound(this.#grpc, this.#grpcPort);
  }

  /** Nobody listens at its ports any more. */
  async stop(): Promise<void> {
    const http = this.#http;
    this.#http = undefined;
    this.#grpc?.forceShutdown();
    this.#grpc = undefined;
    if (http === undefined) return;
    http.closeAllConnections();
    http.close();
    await once(http, "close");
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get grpcUrl(): string {
    return `http://127.0.0.1:${this.#grpcPort}`;
  }

  /** @throws Error where no span has that name */
  named(name: string): ReceivedSpan {
    const found = this.spans.find((span) => span.name === name);
    if (found === undefined)
      throw new Error(`no span ${name}: ${this.spans.map((one) => one.name).join(", ")}`);
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #received(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces);
    const { url = "", headers } = request;
    this.headers.push(headers);
    this.paths.push(url);
    const signal = url.split("/").at(-1);
    const isJson = headers["content-type"] === "application/json";
    if (this.status === 200 && isSignal(signal))
      this.#take(signal, headers["content-encoding"] === "gzip" ? gunzipSync(body) : body, isJson);
    const type = isJson ? "application/json" : "application/x-protobuf";
    response.writeHead(this.status, { "content-type": type }).end(this.answer);
  }

  #take(signal: Signal, body: Uint8Array, isJson: boolean): void {
    const request = decoded(signal, body, isJson);
    if (signal === "traces") this.spans.push(...spansOf(request));
    else if (signal === "metrics") this.points.push(...pointsOf(request));
    else this.logs.push(...logsOf(request));
  }

  #grpcServer(): GrpcServer {
    const server = new GrpcServer({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
    const same = (bytes: Buffer) => bytes;
    for (const [signal, { area, service }] of Object.entries(signals)) {
      const path = `/opentelemetry.proto.collector.${area}.v1.${service}/Export`;
      const serializers = { requestSerialize: same, requestDeserialize: same };
      const answers = { responseSerialize: same, responseDeserialize: same };
      const streams = { requestStream: false, responseStream: false } as const;
      const definition = { Export: { path, ...streams, ...serializers, ...answers } };
      const Export = (
        call: { readonly request: Buffer; readonly metadata: Metadata },
        done: sendUnaryData<Buffer>,
      ) => {
        this.metadata.push(call.metadata);
        if (this.status !== 200) return done({ code: status.UNAVAILABLE, details: "not now" });
        if (isSignal(signal)) this.#take(signal, call.request, false);
        done(null, Buffer.alloc(0));
      };
      server.addService(definition, { Export });
    }
    return server;
  }
}

function isSignal(text: string | undefined): text is Signal {
  return text !== undefined && text in signals;
}

function bound(server: GrpcServer, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, found) => {
      if (error === null) resolve(found);
      else reject(error);
    });
  });
}
