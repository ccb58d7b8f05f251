import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BareSandbox } from "../control/bare-sandbox.js";
import { unprivilegedUser } from "../control/unprivileged-user.js";
import type { ExecutorWorld, Reply } from "./executor-case.js";

export interface OpenWorld extends ExecutorWorld {
  readonly sandbox: BareSandbox;
  /** Number of requests that the server has received. */
  requests(): number;
  /** Number of requests that are still open. */
  held(): number;
  close(): Promise<void>;
}

export async function openWorld(): Promise<OpenWorld> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-kit-executor-"));
  let reply: Reply | "never" = {};
  let taken = 0;
  let held = 0;
  const server = createServer((request, response) => {
    taken += 1;
    request.resume();
    held += 1;
    response.on("close", () => {
      held -= 1;
    });
    if (reply === "never") return;
    const { status = 200, headers = { "content-type": "application/json" }, body = "{}" } = reply;
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const sandbox = await BareSandbox.open({ user: unprivilegedUser(), confinement: "unconfined", env: {} });
  return {
    url: `http://127.0.0.1:${port}`,
    folder,
    sandbox,
    answer: (next) => {
      reply = next;
    },
    requests: () => taken,
    held: () => held,
    close: async () => {
      await sandbox.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
