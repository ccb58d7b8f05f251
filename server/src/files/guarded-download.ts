import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import {
  type AddressPolicy,
  AddressRefused,
  guardedLookup,
  literalAddress,
  portOf,
  whyForbidden,
} from "@ambit/egress";
import type { OpenDownload, OpenedDownload } from "@ambit/workspace";

/**
 * Asks for a file over a connection of its own, to an address that was checked; redirects are not followed.
 * @throws AddressRefused; Error where there is no answer; the signal's reason
 */
export function openGuarded(
  { url, headers }: Parameters<OpenDownload>[0],
  policy: AddressPolicy,
  signal: AbortSignal,
): Promise<OpenedDownload> {
  const why = (address: string) => whyForbidden([policy], address, portOf(url));
  const literal = literalAddress(url);
  const refused = literal === undefined ? undefined : why(literal);
  if (refused !== undefined) return Promise.reject(new AddressRefused(refused));
  const send = url.protocol === "http:" ? requestHttp : requestHttps;
  return new Promise((resolve, reject) => {
    const options = { method: "GET", agent: false, headers, lookup: guardedLookup(why), signal };
    const request = send(url, options, (response) => resolve(opened(response)));
    // Without this listener Node closes the connection, and no other event follows.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new Error("it changed the protocol"));
    });
    request.once("error", reject);
    request.end();
  });
}

function opened(response: IncomingMessage): OpenedDownload {
  const { statusCode: status = 0, headers } = response;
  // Closed before it was read, or cut off: there may be no listener then.
  response.on("error", () => {});
  const length = headers["content-length"];
  return {
    status,
    location: headers.location,
    size: length === undefined ? undefined : Number(length),
    content: response,
    close: () => void response.destroy(),
  };
}
