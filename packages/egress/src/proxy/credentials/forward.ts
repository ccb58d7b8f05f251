import type { IncomingMessage, ServerResponse } from "node:http";
import { type Agent, request as httpsRequest } from "node:https";
import { finished, pipeline, type Readable, type Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { type Replacements, replaceIn, StreamReplacer } from "../../replacements.js";
import { formatTarget, type Target } from "../../target.js";
import { type EgressLimits, type Share, SharedBudget } from "../clients.js";
import { valuesOf } from "../http/destination.js";
import { copyRequestHeaders, passBody, responseHeaders } from "../http/exchange.js";
import { BOUNDARY_HEADER } from "../http/own-response.js";

interface Coding {
  readonly open: () => Transform;
  /** What one decoder holds at most, outside V8's heap, which doesn't count it. Measured. */
  readonly costMb: number;
}

/** An answer may request a window of up to 128 MiB; senders over HTTP may use 8 (RFC 9659). */
const zstdWindowLog = 23;

const gzip: Coding = { open: createGunzip, costMb: 1 };
const codings: Readonly<Record<string, Coding>> = {
  gzip,
  "x-gzip": gzip,
  deflate: { open: createInflate, costMb: 1 },
  // The format's own limit is 16 MiB; a larger window needs an option that isn't set.
  br: { open: createBrotliDecompress, costMb: 20 },
  zstd: {
    open: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } }),
    costMb: 11,
  },
};

/** Decoders of all sessions. Responses are requested without an encoding, so few servers cause one. */
const maxDecodersMb = 128;
const ofThisProcess = new SharedBudget(maxDecodersMb);

/** One session's decoders of encoded responses, within what all sessions may have. */
export class Decoders {
  readonly #share: Share;

  constructor(budget: SharedBudget = ofThisProcess) {
    this.#share = budget.join();
  }

  /** @returns `unknown` for a coding that can't be decoded, `busy` if there are too many decoders already. */
  open(name: string): Transform | "unknown" | "busy" {
    const coding = Object.hasOwn(codings, name) ? codings[name] : undefined;
    if (coding === undefined) return "unknown";
    const { open, costMb } = coding;
    if (!this.#share.take(costMb)) return "busy";
    return open().once("close", () => this.#share.release(costMb));
  }

  /** The session is closed; open decoders close with their connections. */
  close(): void {
    this.#share.leave();
  }
}

interface Forwarding {
  readonly target: Target;
  readonly path: string;
  /** The header, with values instead of placeholders. */
  readonly rawHeaders: readonly string[];
  /** In place of the request's body, which was already read. */
  readonly body: string | undefined;
  readonly agent: Agent;
  /** What is replaced in the response, as of now: a credential may get a new value before it ends. */
  readonly replacements: () => Replacements;
  readonly decoders: Decoders;
  readonly limits: EgressLimits;
  readonly onFault: (fault: unknown) => void;
  /** Called if there is no usable answer, with the reason. */
  readonly onFailure: (reason: string) => void;
}

/** Sends the request over the client's own connection to the server, and removes the values from the response. */
export function forward(request: IncomingMessage, response: ServerResponse, forwarding: Forwarding): void {
  const { target, path, rawHeaders, body, agent, limits } = forwarding;
  if (response.destroyed) return;
  const outgoing = httpsRequest({
    agent,
    method: request.method,
    path,
    host: target.host,
    port: target.port,
    setHost: false,
    maxHeaderSize: limits.headerBytes,
  });
  response.once("close", () => outgoing.destroy());
  outgoing.on("error", (error: NodeJS.ErrnoException) => {
    // As without a proxy: a kept-alive connection that the server has closed meanwhile is closed, and the client tries
    // again.
    if (outgoing.reusedSocket && error.code === "ECONNRESET") return void request.socket.destroy();
    if (response.headersSent || response.destroyed) return void response.destroy();
    forwarding.onFailure(error.message);
    sendText(
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
      respond(incoming, response, forwarding, request.method === "HEAD");
    } catch (cause) {
      outgoing.destroy(new Error("the server's header can't be passed on", { cause }));
    }
  });
  outgoing.setHeader("Host", target.port === 443 ? target.host : formatTarget(target));
  copyRequestHeaders({ rawHeaders: [...rawHeaders] }, outgoing);
  // Encoded content can't be searched.
  outgoing.setHeader("Accept-Encoding", "identity");
  if (body !== undefined) {
    outgoing.setHeader("Content-Length", Buffer.byteLength(body));
    return void outgoing.end(body);
  }
  if (valuesOf(request, "transfer-encoding").length > 0) outgoing.setHeader("Transfer-Encoding", "chunked");
  else if (valuesOf(request, "content-length").length === 0) return void outgoing.end();
  outgoing.flushHeaders();
  passBody(request, outgoing);
}

function respond(
  incoming: IncomingMessage,
  response: ServerResponse,
  { replacements, decoders, target }: Forwarding,
  isHead: boolean,
): void {
  const { statusCode = 502, statusMessage = "" } = incoming;
  const hasBody = !isHead && statusCode !== 204 && statusCode !== 304;
  const coding = hasBody ? valuesOf(incoming, "content-encoding").join().trim().toLowerCase() : "";
  const refuse = (status: 502 | 503, what: string) => {
    incoming.destroy();
    sendText(response, status, `${formatTarget(target)} sent ${what}`);
  };
  const isCoded = coding !== "" && coding !== "identity";
  if (isCoded && statusCode === 206)
    return void refuse(502, "a part of an encoded answer, which can't be searched for credentials");
  const decoder = isCoded ? decoders.open(coding) : undefined;
  if (decoder === "unknown")
    return void refuse(
      502,
      `the encoding ${JSON.stringify(coding)}, which can't be searched for credentials`,
    );
  if (decoder === "busy")
    return void refuse(503, "an encoded answer, and too many of them are being decoded: try again later");
  // Also of a header that can't be written.
  response.once("close", () => decoder?.destroy());
  const known = replacements();
  const headers = responseHeaders(incoming).map((text) => replaceIn(text, known, "latin1"));
  const kept = headers.filter((_text, index) => {
    const name = headers[index - (index % 2)]?.toLowerCase();
    return decoder === undefined || (name !== "content-encoding" && name !== "content-length");
  });
  response.sendDate = false;
  response.writeHead(statusCode, replaceIn(statusMessage, known, "latin1"), kept);
  response.flushHeaders();
  passOn(decoder === undefined ? incoming : pipeline(incoming, decoder, () => {}), response, replacements);
}

/** With backpressure, and without streams in between, which cost time with large responses. */
function passOn(body: Readable, response: ServerResponse, replacements: () => Replacements): void {
  const replacer = new StreamReplacer(replacements());
  body.on("data", (chunk: Buffer) => {
    replacer.follow(replacements());
    const passed = replacer.push(chunk);
    const written = passed === chunk ? () => release(chunk) : undefined;
    if (passed.length > 0 && !response.write(passed, written)) body.pause();
  });
  response.on("drain", () => body.resume());
  response.once("close", () => body.destroy());
  finished(body, { writable: false }, (error) => {
    // The client sees a truncated body, never a complete one.
    if (error) response.destroy();
    else response.end(replacer.end());
  });
}

/** A chunk's memory is outside V8's heap: waiting for the garbage collector to free it costs more than the search. */
function release(chunk: Buffer): void {
  const { buffer } = chunk;
  // Small ones share their memory with others.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === chunk.length) buffer.transfer(0);
}

const texts = {
  403: "Refused by Ambit's boundary",
  426: "Upgrade Required",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
} as const;

/** A response of the proxy itself as plain text, which git shows to its user; as JSON to git LFS, which shows only that. */
export function sendText(response: ServerResponse, status: keyof typeof texts, reason: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const isRefused = status === 403;
  const lead = isRefused ? "Ambit's boundary refused this request" : "Ambit's proxy can't serve this";
  const message = `${lead}: ${reason}.`;
  const isLfs = response.req.headers["user-agent"]?.startsWith("git-lfs/") === true;
  response.writeHead(status, texts[status], {
    "content-type": isLfs ? "application/vnd.git-lfs+json" : "text/plain; charset=utf-8",
    "cache-control": "no-store",
    connection: "close",
    // The available upgrade (RFC 9110 section 15.5.22): none.
    ...(status === 426 ? { upgrade: "HTTP/1.1" } : {}),
    [BOUNDARY_HEADER]: isRefused ? "refused" : "passed",
  });
  response.end(isLfs ? JSON.stringify({ message }) : `${message}\n`);
}
