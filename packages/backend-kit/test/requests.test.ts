import { once } from "node:events";
import { createServer, type RequestListener, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { BoundedAgent, firstByteWithin, isLate, signalWithin } from "../src/index.js";

/** Asks a server that answers so, with an agent. */
async function asking(answer: RequestListener, agent?: BoundedAgent) {
  const server = createServer(answer).on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: tcp\r\n\r\n");
    socket.write(Buffer.alloc(200_000));
    setTimeout(() => socket.end(), 200);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return async (options: { signal?: AbortSignal; headers?: Record<string, string> } = {}) => {
    const asked = request({ host: "127.0.0.1", port, ...(agent && { agent }), ...options }).end();
    const [response, socket, head = ""] = await Promise.race([
      once(asked, "response"),
      once(asked, "upgrade"),
    ]);
    return head.length + (await text(socket ?? response)).length;
  };
}

it("ends a request without a response, and reports the timeout", async () => {
  const ask = await asking(() => undefined);
  const error = await ask({ signal: signalWithin(20) }).catch((thrown: unknown) => thrown);
  expect(isLate(error)).toBe(true);
  const given = new AbortController();
  const asked = ask({ signal: signalWithin(60_000, given.signal) }).catch((thrown: unknown) => thrown);
  given.abort(new Error("not needed"));
  expect(isLate(await asked)).toBe(false);
});

it("lets a response that began in time take as long as it needs", async () => {
  const ask = await asking((_request, response) => {
    response.write("begun");
    setTimeout(() => response.end("ended"), 60);
  });
  const limit = new AbortController();
  const begun = await firstByteWithin(20_000, limit.signal, async (signal) => ask({ signal }));
  expect(begun).toBe(10);
  const [silent, late] = [await asking(() => undefined), new AbortController().signal];
  await expect(firstByteWithin(20, late, (signal) => silent({ signal }))).rejects.toSatisfy(isLate);
});

it("cuts off a response without an end, and no upgraded stream", async () => {
  const endless: RequestListener = (_request, response) => {
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(10_000)));
    };
    response.on("drain", more);
    more();
  };
  const ask = await asking(endless, new BoundedAgent(100_000));
  await expect(ask()).rejects.toThrow();
  expect(await ask({ headers: { connection: "Upgrade", upgrade: "tcp" } })).toBe(200_000);
});

it("is short to inspect, however many connections it has open", async () => {
  const agent = new BoundedAgent();
  let open = 0;
  const ask = await asking(() => {
    open += 1;
  }, agent);
  const stop = new AbortController();
  const asked = Array.from({ length: 5 }, () => ask({ signal: stop.signal }).catch(() => undefined));
  await expect.poll(() => open).toBe(5);
  expect(inspect({ agent }, { showHidden: true, depth: null })).toBe("{ agent: BoundedAgent {} }");
  stop.abort();
  await Promise.all(asked);
});
