import { once } from "node:events";
import { createServer } from "node:http";
import { fail, handle, startRecord } from "./handle.js";
import { type RecordedRequest, Recording } from "./recording.js";
import { type Script, scriptFunction } from "./script.js";

export interface ModelServerOptions {
  /** Default: follow the markers in the prompt (README). */
  readonly script?: Script;
  /** Default 0: any free port. */
  readonly port?: number;
  /** If set, a request with another credential, or none, gets the API's own 401. */
  readonly expectedKey?: string;
  /** Ids in the lists of models. Default `["scripted-model"]`. A request may name any model. */
  readonly models?: readonly string[];
  /** Called when a response has ended, was cut, or its client disconnected. */
  readonly onFinished?: (request: RecordedRequest) => void;
  /** Default true. Set false for a long-running server: every recorded request keeps its body. */
  readonly record?: boolean;
}

export interface ModelServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, without a path: OpenAI clients need `/v1` after it, the others don't. */
  readonly url: string;
  readonly port: number;
  /** In order of arrival, including refused ones. */
  readonly requests: readonly RecordedRequest[];
  /** The first request, past or future, that matches. Has no time limit but the test's own. */
  waitFor(matches: (request: RecordedRequest) => boolean): Promise<RecordedRequest>;
  /** Cuts every open connection. May be called twice. */
  close(): Promise<void>;
}

const HOST = "127.0.0.1";

/** Starts a scripted model provider on loopback. Rejects when the port is taken. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const settings = {
    decide: scriptFunction(options.script),
    expectedKey: options.expectedKey,
    models: options.models ?? ["scripted-model"],
  };
  const recording = new Recording();
  const closing = new AbortController();

  const server = createServer((request, response) => {
    const record = startRecord(request, response);
    if (options.record !== false) recording.add(record);
    const disconnected = new AbortController();
    response.once("close", () => {
      record.aborted = !response.writableEnded && record.answer?.kind !== "drop";
      record.finished = true;
      disconnected.abort();
      recording.changed(record);
      options.onFinished?.(record);
    });
    const signal = AbortSignal.any([disconnected.signal, closing.signal]);
    handle(request, response, record, {
      ...settings,
      signal,
      changed: () => recording.changed(record),
    }).catch(
      // The client has disconnected, which the record says.
      (error: unknown) => (signal.aborted ? response.destroy() : fail(response, record, error)),
    );
  });

  server.listen(options.port ?? 0, HOST);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no TCP port.");

  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= new Promise((resolve) => {
      closing.abort();
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return closed;
  };
  return {
    url: `http://${HOST}:${address.port}`,
    port: address.port,
    requests: recording.requests,
    waitFor: (matches) => recording.waitFor(matches),
    close,
    [Symbol.asyncDispose]: close,
  };
}
