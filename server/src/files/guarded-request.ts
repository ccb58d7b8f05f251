import { request as requestHttps } from "node:https";
import { KeptPieces } from "@ambit/core/plugin";
import {
  type AddressPolicy,
  AddressRefused,
  guardedLookup,
  literalAddress,
  portOf,
  whyForbidden,
} from "@ambit/egress";
import type { SendToApi } from "@ambit/workspace";

/** Bytes of an answer. */
const maxResponseBytes = 1_048_576;

/**
 * Sends one request over TLS and a connection of its own, as `exchangeGuarded` does.
 * @throws AddressRefused; Error for an answer that is too large or broken; the signal's reason
 */
export function sendGuarded(
  { method, url, headers, body }: Parameters<SendToApi>[0],
  policy: AddressPolicy,
  signal: AbortSignal,
): ReturnType<SendToApi> {
  const why = (address: string) => whyForbidden([policy], address, portOf(url));
  const options = { send: requestHttps, why, maxBytes: maxResponseBytes };
  return exchangeGuarded({ method, url, headers, body }, options, signal);
}

export interface GuardedOptions {
  readonly send: typeof requestHttps;
  /** Why no connection to this address is allowed; undefined if it is. */
  readonly why: (address: string) => string | undefined;
  /** Of an answer. */
  readonly maxBytes: number;
}

/**
 * Sends one request over a connection of its own, to an address that was checked; redirects are not followed.
 * @throws AddressRefused; Error for an answer that is too large or broken; the signal's reason
 */
export function exchangeGuarded(
  { method, url, headers, body }: Parameters<SendToApi>[0],
  { send, why, maxBytes }: GuardedOptions,
  signal: AbortSignal,
): ReturnType<SendToApi> {
  const literal = literalAddress(url);
  const refused = literal === undefined ? undefined : why(literal);
  if (refused !== undefined) return Promise.reject(new AddressRefused(refused));
  return new Promise((resolve, reject) => {
    const options = { method, agent: false, headers, lookup: guardedLookup(why), signal };
    const request = send(url, options, (response) => {
      const { statusCode: status = 0 } = response;
      const parts = new KeptPieces();
      let size = 0;
      response.on("data", (part: Buffer) => {
        size += part.length;
        parts.push(part);
        if (size > maxBytes) response.destroy(new Error(`its answer has more than ${maxBytes} bytes`));
      });
      response.once("error", reject);
      response.once("end", () => resolve({ status, body: parts.take().toString() }));
      // One that ended before its length says so in `error` only if it was aborted.
      response.once("close", () => reject(new Error("its answer was cut off")));
    });
    // Without this listener Node closes the connection, and no other event follows.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new Error("it changed the protocol"));
    });
    request.once("error", reject);
    request.end(body);
  });
}
