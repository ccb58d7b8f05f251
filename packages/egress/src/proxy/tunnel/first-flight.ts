import { METHODS } from "node:http";
import { readHost } from "@ambit/core/plugin";
import type { Target } from "../../target.js";
import { maxClientHelloBytes, readClientHello } from "./client-hello.js";

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
export type FlightVerdict =
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
