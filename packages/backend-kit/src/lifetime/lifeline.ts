import { connect, createServer, type Server } from "node:net";
import { codeOf } from "@ambit/core/plugin";
import { inFolder, type OpenFolder } from "../safe-fs/index.js";

/** Bytes of a socket's path that every system supports. */
const maxPathBytes = 103;

/**
 * A socket that listens as long as this process lives: the kernel closes it however the process ends, SIGKILL included,
 * and containers that share the folder see that too. A pid in a file shows neither. It doesn't keep the process alive.
 *
 * @throws what the system says, such as EADDRINUSE.
 */
export async function listenAt(folder: OpenFolder, name: string): Promise<Server> {
  // By descriptor if possible, since a folder's path may be longer than a socket's path may be.
  const path = inFolder(folder, name);
  // Node.js silently truncates a longer one, and all sockets of the folder would share the result.
  if (Buffer.byteLength(path) > maxPathBytes) throw new Error(`${path} is too long for a socket`);
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => resolve());
  });
  server.unref();
  return server;
}

/** Whether a process listens there. Only two refusals say that none does; after any other, one may be alive. */
export function isListening(folder: OpenFolder, name: string): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const connection = connect(inFolder(folder, name));
    connection.once("connect", () => resolve(true));
    connection.once("error", (error) => resolve(!["ENOENT", "ECONNREFUSED"].includes(codeOf(error) ?? "")));
    connection.once("close", () => connection.destroy());
    connection.once("connect", () => connection.destroy());
  });
}
