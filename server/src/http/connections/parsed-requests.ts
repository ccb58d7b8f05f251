import type { Socket } from "node:net";

/** What Node's parser of HTTP takes from `onIncoming`: the rest of what was read is no longer HTTP. */
const leaveRest = 2;

/**
 * Once a connection has ended, none of its further requests is built. Node parses everything that a read brought, also
 * after the first request in it ended the connection: 64 KiB hold 2,400 requests, which take 30 ms.
 *
 * Node has no public way to stop its parser. `parser.onIncoming` is the same in 22, 24 and 26; in a version without it, the rest is
 * built.
 */
export function endParsingWith(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, "parser");
  if (typeof parser !== "object" || parser === null) return;
  const onIncoming: unknown = Reflect.get(parser, "onIncoming");
  if (typeof onIncoming !== "function") return;
  Reflect.set(parser, "onIncoming", (...given: unknown[]): unknown => {
    const taken: unknown = Reflect.apply(onIncoming, parser, given);
    return socket.destroyed ? leaveRest : taken;
  });
}
