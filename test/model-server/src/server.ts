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
  /** When set, a request that carries any other credential, or none, gets the API's own 401. */
  readonly expectedKey?: string;
  /** Ids that the model lists name. Default `["scripted-model"]`. A request may name any model. */
  readonly models?: readonly string[];
  /** Called when the answer to a request has ended, been cut or been left. */
  readonly onFinished?: (request: RecordedRequest) => void;
  /** Default true. False for a server that runs on and on: every recorded request keeps its body. */
  readonly record?: boolean;
}

export interface ModelServer extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, without a path: OpenAI clients want `/v1` behind it, the others don't. */
  readonly url: string;
  readonly port: number;
  /** In order of arrival, refused ones included. */
  readonly requests: readonly RecordedRequest[];
  /** The first request, past or future, that matches. It waits without limit: the test's own applies. */
  waitFor(matches: (request: RecordedRequest) => boolean): Promise<RecordedRequest>;
  /** Cuts every open connection. Safe to call twice. */
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
      // A client that has left gets nothing; the record says that it left.
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
