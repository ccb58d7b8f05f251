import type { Server } from "node:net";
import { SandboxFailed } from "@ambit/core/plugin";

export function listening(
  server: Server,
  where: { path: string } | { host: string; port: number },
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new SandboxFailed(`The runner can't listen: ${error.message}`, { cause: error })),
    );
    server.listen(where, () => resolve());
  });
}

/** Stops listening; resolves when the last connection is closed. */
export function closed(server: Server): Promise<void> {
  return new Promise<void>((resolve) => server.close(() => resolve()));
}
