import type { Duplex } from "node:stream";
import { messageOf, type Sandbox } from "@ambit/core/plugin";

/** Milliseconds that a connection, and an answer on it, may take on a busy machine. */
const patienceMs = 5_000;
/** Characters of an answer that are looked at. */
const maxCharacters = 65_536;

/** A connection to a port inside, or why nothing got in. @throws Error for a sandbox that carries none. */
export async function enter(sandbox: Sandbox, port: number): Promise<Duplex | string> {
  if (sandbox.connect === undefined) throw new Error("the sandbox has no connect()");
  const entering = sandbox.connect(port);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no connection within ${patienceMs / 1_000} s`), patienceMs);
  });
  try {
    const entered = await Promise.race([entering, late]);
    if (typeof entered === "string") void entering.then((connection) => connection.destroy()).catch(() => {});
    else entered.on("error", () => entered.destroy());
    return entered;
  } catch (error) {
    return messageOf(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the other side of a connection answers a request with these words. */
export function isAnswered(connection: Duplex, words: string): Promise<boolean> {
  return new Promise((resolve) => {
    let heard = "";
    const settle = (isHeard: boolean) => {
      clearTimeout(timer);
      connection.off("data", onData).off("end", onEnd).off("close", onEnd);
      resolve(isHeard);
    };
    const onData = (chunk: Buffer) => {
      heard += chunk.toString("latin1");
      if (heard.includes(words)) settle(true);
      else if (heard.length > maxCharacters) settle(false);
    };
    const onEnd = () => settle(false);
    const timer = setTimeout(onEnd, patienceMs);
    if (connection.destroyed || connection.readableEnded) return onEnd();
    connection.on("data", onData).on("end", onEnd).on("close", onEnd);
    connection.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  });
}

/** What came of a connection to a port: the words, or why they weren't heard. */
export async function tryPort(
  sandbox: Sandbox,
  port: number,
  words: string,
): Promise<{ readonly isReached: boolean; readonly detail: string }> {
  const connection = await enter(sandbox, port);
  if (typeof connection === "string") return { isReached: false, detail: connection };
  try {
    const isReached = await isAnswered(connection, words);
    return { isReached, detail: isReached ? `port ${port} answered` : `port ${port} said something else` };
  } finally {
    connection.destroy();
  }
}
