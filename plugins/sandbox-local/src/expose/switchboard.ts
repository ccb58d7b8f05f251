import type { Socket } from "node:net";

/** Bytes that are enough to see what a connection wants: the longest method, a space, and what follows it. */
const enough = 32;
const patienceMs = 10_000;

/** Where a jail's connection belongs: to the boundary's proxy, or to what is exposed to it. */
export type Line = "proxy" | "exposed";

/** `POST /path` is for a server, as in RFC 9112 3.2.1; `CONNECT host`, `GET http://…` and SOCKS are for a proxy. */
export function lineOf(beginning: Buffer): Line | undefined {
  const text = beginning.toString("latin1");
  const method = /^[A-Z]+( (.)?)?/.exec(text);
  if (method === null) return beginning.length === 0 ? undefined : "proxy";
  if (method[2] !== undefined) return method[2] === "/" ? "exposed" : "proxy";
  const cutOff = method[0].length === text.length;
  return cutOff && beginning.length < enough ? undefined : "proxy";
}

/** Looks at a connection's first bytes and puts it through, with these bytes still to be read. */
export function putThrough(connection: Socket, to: (line: Line, connection: Socket) => void): void {
  const timer = setTimeout(() => connection.destroy(), patienceMs);
  const ignore = () => connection.destroy();
  let seen = Buffer.alloc(0);
  const onReadable = () => {
    const chunk: Buffer | null = connection.read();
    if (chunk !== null) seen = Buffer.concat([seen, chunk]);
    const line = lineOf(seen);
    if (line === undefined) return;
    stop();
    connection.unshift(seen);
    to(line, connection);
  };
  const onEnd = () => {
    stop();
    connection.destroy();
  };
  const stop = () => {
    clearTimeout(timer);
    connection.off("readable", onReadable);
    connection.off("end", onEnd);
    connection.off("error", ignore);
    connection.off("close", stop);
  };
  connection.on("readable", onReadable);
  connection.on("end", onEnd);
  connection.on("error", ignore);
  connection.on("close", stop);
}
