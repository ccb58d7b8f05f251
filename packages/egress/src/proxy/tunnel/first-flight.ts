import { METHODS } from "node:http";
import { readHost } from "@ambit/core/plugin";
import type { Target } from "../../target.js";

/**
 * What may follow the opening of a tunnel, judged by the client's first bytes. A tunnel to an address is bound by
 * the address and passes unchecked. A tunnel to a name is bound by the name, so its content must name the same host:
 *
 * - TLS, on every port: the ClientHello's server name must be the tunnel's name; absent means refused. With
 *   encrypted ClientHello the outer name is the one compared.
 * - Port 443 carries TLS only: anything else has no name to compare (SSH over 443 included).
 * - Cleartext HTTP/1: passed to the HTTP side, which compares the Host of every request. Port 80 carries only that.
 *   Cleartext HTTP/2 hides its host and is refused.
 * - Anything else on another port passes: the list determined its name and address. A protocol that switches to TLS
 *   later (STARTTLS) isn't checked again.
 */
type FlightVerdict =
  | { readonly verdict: "wait"; readonly needed: number }
  | { readonly verdict: "pass" }
  | { readonly verdict: "http" }
  | { readonly verdict: "refuse"; readonly reason: string; readonly tls: boolean };

const HTTP_2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n");
const maxEmptyBytes = 64;
const methodStarts = METHODS.map((method) => Buffer.from(`${method} `));

/** @param ended whether the client has half-closed, so that nothing follows. */
export function judgeFirstFlight(target: Target, bytes: Buffer, ended: boolean): FlightVerdict {
  if (target.kind === "address" || (ended && bytes.length === 0)) return { verdict: "pass" };
  if (bytes.length === 0) return { verdict: "wait", needed: 1 };
  const hello = readClientHello(bytes);
  switch (hello.state) {
    case "incomplete":
      return ended || bytes.length > maxClientHelloBytes
        ? { verdict: "refuse", reason: "the TLS ClientHello is incomplete", tls: true }
        : { verdict: "wait", needed: hello.needed };
    case "malformed":
      return { verdict: "refuse", reason: hello.why, tls: true };
    case "hello":
      return judgeServerName(target, hello.serverName);
    case "not-tls":
      return judgeCleartext(target, bytes, ended);
  }
}

function judgeServerName(target: Target, serverName: string | undefined): FlightVerdict {
  if (serverName === undefined) {
    return {
      verdict: "refuse",
      reason: `the TLS handshake names no server, so it may be for another server than ${target.host}`,
      tls: true,
    };
  }
  const name = readHost(serverName);
  if (name.ok && name.kind === "name" && name.host === target.host) return { verdict: "pass" };
  return {
    verdict: "refuse",
    reason: `the TLS handshake names ${name.ok ? name.host : "an unreadable server"}, not ${target.host}`,
    tls: true,
  };
}

function judgeCleartext(target: Target, received: Buffer, ended: boolean): FlightVerdict {
  const refuse = (reason: string): FlightVerdict => ({ verdict: "refuse", reason, tls: false });
  if (target.port === 443) return refuse("port 443 of a listed name carries TLS only");
  // HTTP servers skip empty lines before a request.
  const start = received.findIndex((byte) => byte !== 0x0d && byte !== 0x0a);
  if (start === -1 && !ended && received.length < maxEmptyBytes) {
    return { verdict: "wait", needed: received.length + 1 };
  }
  const bytes = received.subarray(start === -1 ? received.length : start);
  const startsLike = (text: Buffer) => {
    const length = Math.min(text.length, bytes.length);
    return bytes.subarray(0, length).equals(text.subarray(0, length));
  };
  if (bytes.length >= HTTP_2_PREFACE.length && startsLike(HTTP_2_PREFACE)) {
    return refuse("cleartext HTTP/2 hides the requested host");
  }
  const candidates = [...methodStarts, HTTP_2_PREFACE].filter(startsLike);
  if (methodStarts.some((text) => candidates.includes(text) && bytes.length >= text.length))
    return { verdict: "http" };
  if (candidates.length > 0 && !ended && bytes.length > 0)
    return { verdict: "wait", needed: received.length + 1 };
  return target.port === 80 ? refuse("port 80 of a listed name carries HTTP/1 only") : { verdict: "pass" };
}

/**
 * Reads the server name from a TLS ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3) without taking part
 * in the handshake. Anything ambiguous is `malformed`, and refused by the caller.
 */
type ClientHelloReading =
  /** Call again when `needed` bytes have arrived; fewer can't change the result. */
  | { readonly state: "incomplete"; readonly needed: number }
  | { readonly state: "not-tls" }
  | { readonly state: "malformed"; readonly why: string }
  | { readonly state: "hello"; readonly serverName: string | undefined };

/** A current ClientHello has 0.3 to 2 KiB. More than this, including records, is refused. */
export const maxClientHelloBytes = 32 * 1024;

const HANDSHAKE_RECORD = 0x16;
const CLIENT_HELLO = 0x01;
const maxRecordBytes = 16 * 1024;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const SERVER_NAME_EXTENSION = 0;

const malformed = (why: string): ClientHelloReading => ({ state: "malformed", why });

export function readClientHello(bytes: Buffer): ClientHelloReading {
  if (bytes.length === 0) return { state: "incomplete", needed: 1 };
  if (bytes[0] !== HANDSHAKE_RECORD) return { state: "not-tls" };
  const fragments: Buffer[] = [];
  let collected = 0;
  let wanted = MESSAGE_HEADER;
  // One handshake message may be spread over many records, and one record over many packets.
  for (let offset = 0; ; ) {
    if (offset + RECORD_HEADER > maxClientHelloBytes) return malformed("the ClientHello is too long");
    if (bytes.length < offset + RECORD_HEADER) return { state: "incomplete", needed: offset + RECORD_HEADER };
    if (bytes[offset] !== HANDSHAKE_RECORD) return malformed("another record interrupts the ClientHello");
    if (bytes[offset + 1] !== 3) return malformed("the TLS record has an unknown version");
    const length = bytes.readUInt16BE(offset + 3);
    if (length === 0 || length > maxRecordBytes) return malformed("the TLS record has an impossible length");
    const end = offset + RECORD_HEADER + length;
    if (end > maxClientHelloBytes) return malformed("the ClientHello is too long");
    if (bytes.length < end) return { state: "incomplete", needed: end };
    fragments.push(bytes.subarray(offset + RECORD_HEADER, end));
    collected += length;
    offset = end;
    if (collected >= MESSAGE_HEADER && wanted === MESSAGE_HEADER) {
      const header = Buffer.concat(fragments);
      if (header[0] !== CLIENT_HELLO) return malformed("the first TLS message is not a ClientHello");
      wanted += header.readUIntBE(1, 3);
      if (wanted > maxClientHelloBytes) return malformed("the ClientHello is too long");
    }
    if (collected >= wanted && wanted > MESSAGE_HEADER) {
      return readMessage(Buffer.concat(fragments).subarray(MESSAGE_HEADER, wanted));
    }
    if (collected >= MESSAGE_HEADER && wanted === MESSAGE_HEADER)
      return malformed("the ClientHello is empty");
  }
}

/** A cursor that returns undefined instead of reading past the end. */
class Cursor {
  readonly #bytes: Buffer;
  #position = 0;
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  get atEnd(): boolean {
    return this.#position === this.#bytes.length;
  }
  take(length: number): Buffer | undefined {
    if (this.#position + length > this.#bytes.length) return undefined;
    this.#position += length;
    return this.#bytes.subarray(this.#position - length, this.#position);
  }
  number(width: 1 | 2): number | undefined {
    return this.take(width)?.readUIntBE(0, width);
  }
  /** A vector with its length in front, `width` bytes wide. */
  vector(width: 1 | 2): Buffer | undefined {
    const length = this.number(width);
    return length === undefined ? undefined : this.take(length);
  }
}

function readMessage(message: Buffer): ClientHelloReading {
  const cursor = new Cursor(message);
  const versionAndRandom = cursor.take(2 + 32);
  const fields = [versionAndRandom, cursor.vector(1), cursor.vector(2), cursor.vector(1)];
  if (fields.includes(undefined)) return malformed("the ClientHello ends early");
  if (cursor.atEnd) return { state: "hello", serverName: undefined };
  const extensions = cursor.vector(2);
  if (extensions === undefined || !cursor.atEnd)
    return malformed("the ClientHello's extensions have a wrong length");
  const each = new Cursor(extensions);
  let serverName: string | undefined;
  while (!each.atEnd) {
    const type = each.number(2);
    const body = each.vector(2);
    if (type === undefined || body === undefined) return malformed("an extension ends early");
    if (type !== SERVER_NAME_EXTENSION) continue;
    if (serverName !== undefined) return malformed("the server name occurs twice");
    serverName = readServerName(body);
    if (serverName === undefined) return malformed("the server name can't be read");
  }
  return { state: "hello", serverName };
}

/** Exactly one entry, a host name of printable ASCII; nothing else that the format permits is in use. */
function readServerName(body: Buffer): string | undefined {
  const outer = new Cursor(body);
  const list = outer.vector(2);
  if (list === undefined || !outer.atEnd) return undefined;
  const entries = new Cursor(list);
  const type = entries.number(1);
  const name = entries.vector(2);
  if (type !== 0 || name === undefined || name.length === 0 || !entries.atEnd) return undefined;
  return name.every((byte) => byte > 0x20 && byte < 0x7f) ? name.toString("latin1") : undefined;
}
