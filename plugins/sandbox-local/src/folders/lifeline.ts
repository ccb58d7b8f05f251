import { connect, createServer, type Server } from "node:net";
import { codeOf, inFolder, type OpenFolder } from "@ambit/core/plugin";

/**
 * A socket that answers as long as this process lives: the kernel closes it at any death, SIGKILL included, and
 * containers that share the folder see that too. A pid in a file shows neither. It doesn't keep the process alive.
 *
 * @throws what the system says, such as EADDRINUSE.
 */
export async function answerAt(folder: OpenFolder, name: string): Promise<Server> {
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // By descriptor: a socket's path may have 107 bytes at most, and a folder may lie deep.
    server.listen(inFolder(folder, name), () => resolve());
  });
  server.unref();
  return server;
}

/** Whether somebody answers there. Only two refusals say that nobody does; after any other, somebody may be alive. */
export function answers(folder: OpenFolder, name: string): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const connection = connect(inFolder(folder, name));
    connection.once("connect", () => resolve(true));
    connection.once("error", (error) => resolve(!["ENOENT", "ECONNREFUSED"].includes(codeOf(error) ?? "")));
    connection.once("close", () => connection.destroy());
    connection.once("connect", () => connection.destroy());
  });
}
