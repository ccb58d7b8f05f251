import type { IncomingMessage, ServerResponse } from "node:http";
import { type Agent, request as httpsRequest } from "node:https";
import { pipeline, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { type Replacement, StreamReplacer } from "../../stream-replacer.js";
import { formatTarget, type Target } from "../../target.js";
import { valuesOf } from "../http/destination.js";
import { copyRequestHeaders, responseHeaders } from "../http/headers.js";
import type { EgressLimits } from "../limits.js";
import { answerText } from "./text-answer.js";

export interface Forwarding {
  readonly target: Target;
  readonly path: string;
  /** With values in the place of placeholders. */
  readonly rawHeaders: readonly string[];
  /** The request's body, where it has been read already. */
  readonly body: Buffer | undefined;
  readonly agent: Agent;
  readonly replacements: readonly Replacement[];
  readonly limits: EgressLimits;
  readonly onFault: (fault: unknown) => void;
}

/** Sends the request over the client's own connection to the server, and takes the values out of what comes back. */
export function forward(request: IncomingMessage, response: ServerResponse, forwarding: Forwarding): void {
  const { target, path, rawHeaders, body, agent, limits } = forwarding;
  if (response.destroyed) return;
  const outgoing = httpsRequest({
    ...{ agent, method: request.method, path, host: target.host, port: target.port },
    setHost: false,
    maxHeaderSize: limits.headerBytes,
  });
  response.once("close", () => outgoing.destroy());
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    // As without a proxy: a kept connection that the server has closed meanwhile is closed, and the client tries anew.
    if (outgoing.reusedSocket && error.code === "ECONNRESET") return void request.socket.destroy();
    answerText(
      response,
      502,
      `${formatTarget(target)} was allowed, and the connection failed: ${error.message}`,
    );
  });
  outgoing.once("close", () => {
    if (!response.headersSent && !response.destroyed)
      outgoing.emit("error", new Error("there was no answer"));
  });
  outgoing.once("response", (incoming) => {
    try {
      answer(incoming, response, forwarding, request.method === "HEAD");
    } catch (cause) {
      outgoing.destroy(new Error("the server's header can't be passed on", { cause }));
    }
  });
  outgoing.setHeader("Host", target.port === 443 ? target.host : formatTarget(target));
  copyRequestHeaders({ rawHeaders: [...rawHeaders] }, outgoing);
  // What is encoded can't be looked through.
  outgoing.setHeader("Accept-Encoding", "identity");
  if (body !== undefined) return void outgoing.end(body);
  if (valuesOf(request, "transfer-encoding").length > 0) outgoing.setHeader("Transfer-Encoding", "chunked");
  else if (valuesOf(request, "content-length").length === 0) return void outgoing.end();
  outgoing.flushHeaders();
  request.pipe(outgoing);
}

function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  { replacements, target }: Forwarding,
  isHead: boolean,
): void {
  const { statusCode = 502, statusMessage = "" } = incoming;
  const hasBody = !isHead && statusCode !== 204 && statusCode !== 304;
  const coding = hasBody ? valuesOf(incoming, "content-encoding").join().trim().toLowerCase() : "";
  const isCoded = coding !== "" && coding !== "identity";
  const decoder = isCoded ? decoders[coding]?.() : undefined;
  if (isCoded && (decoder === undefined || statusCode === 206)) {
    incoming.destroy();
    const what =
      statusCode === 206 ? "a part of an encoded answer" : `the encoding ${JSON.stringify(coding)}`;
    const reason = `${formatTarget(target)} sent ${what}, which can't be searched for credentials`;
    answerText(response, 502, reason);
    return;
  }
  const headers = responseHeaders(incoming).map((text) => hideIn(text, replacements));
  const kept = headers.filter((_text, index) => {
    const name = headers[index - (index % 2)]?.toLowerCase();
    return decoder === undefined || (name !== "content-encoding" && name !== "content-length");
  });
  response.sendDate = false;
  response.writeHead(statusCode, hideIn(statusMessage, replacements), kept);
  response.flushHeaders();
  const replacer = new StreamReplacer(replacements).asTransform();
  // An error on any side has destroyed all: the client sees a cut body, never a complete one.
  if (decoder === undefined) pipeline(incoming, replacer, response, () => {});
  else pipeline(incoming, decoder, replacer, response, () => {});
}

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

function hideIn(text: string, replacements: readonly Replacement[]): string {
  const replacer = new StreamReplacer(replacements);
  return Buffer.concat([replacer.push(Buffer.from(text, "latin1")), replacer.end()]).toString("latin1");
}
