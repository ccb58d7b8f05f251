import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { Log } from "@ambit/core";
import { expect, it, onTestFinished } from "vitest";
import { sendUntrusted } from "../../src/http/response/send.js";

/** What is logged of files that a reader takes, or leaves. */
async function logOf(
  content: (response: ServerResponse) => AsyncIterable<Uint8Array>,
  read: (response: Response) => Promise<unknown>,
) {
  const levels: string[] = [];
  const entry = (level: string) => () => void levels.push(level);
  const log: Log = {
    debug: entry("debug"),
    info: entry("info"),
    warn: entry("warn"),
    error: entry("error"),
  };
  const sent = Promise.withResolvers<void>();
  const server = createServer((_request, outgoing) => {
    sendUntrusted({ outgoing }, content(outgoing), {}, log).then(sent.resolve, sent.reject);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  await read(await fetch(`http://127.0.0.1:${port}`));
  await sent.promise;
  return levels;
}

const part = new Uint8Array(8);

it("warns of files that can't be read to their end, which their reader sees as a broken connection", async () => {
  const levels = await logOf(
    async function* () {
      yield part;
      throw new Error("the store is gone");
    },
    async (response) => await expect(response.arrayBuffer()).rejects.toThrow(),
  );
  expect(levels).toEqual(["warn"]);
});

it("warns of none that their reader leaves", async () => {
  const levels = await logOf(
    async function* (outgoing) {
      yield part;
      await once(outgoing, "close");
      // A file in a sandbox ends so once its reader has left.
      throw new Error("aborted");
    },
    async ({ body }) => {
      await body?.cancel();
    },
  );
  expect(levels).toEqual(["debug"]);
});
