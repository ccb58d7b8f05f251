import { type ClientRequest, IncomingMessage, request } from "node:http";
import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { stepsByTurn } from "@ambit/fakes/turns";
import { describe, expect, it, onTestFinished } from "vitest";
import { Bodies } from "../../src/http/body.js";
import { saying } from "../support/scripted-agent.js";
import { asking, serveScript } from "../support/server.js";

/** A request whose body begins, and continues when the test says so. */
function begun(
  url: string,
  path = "/run",
): { readonly sent: ClientRequest; readonly status: Promise<unknown> } {
  const body = JSON.stringify(asking);
  const headers = { "content-length": String(body.length) };
  const sent = request(`${url}${path}`, { method: "POST", headers });
  const status = new Promise((resolve) => {
    sent.once("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once("error", resolve);
  });
  sent.write(body.slice(0, 5));
  onTestFinished(() => void sent.destroy());
  return { sent, status };
}

function ending({ sent }: Pick<ReturnType<typeof begun>, "sent">): void {
  sent.end(JSON.stringify(asking).slice(5));
}

describe("a slow body", () => {
  it("takes no slot from other runs", async () => {
    const { url, post } = await serveScript(saying("x"), {
      configuration: { limits: { concurrentRuns: 1 } },
    });
    const slow = [begun(url), begun(url), begun(url, "/stream")];
    for (let turn = 0; turn < 3; turn += 1) expect((await post("/run", asking)).status).toBe(200);
    for (const each of slow) {
      ending(each);
      expect(await each.status).toBe(200);
    }
  });

  it("is refused if no slot is free when it is complete", async () => {
    const { url, runner } = await serveScript(saying("x"), {
      configuration: { limits: { concurrentRuns: 1 } },
    });
    const slow = begun(url);
    const health = await fetch(`${url}/health`);
    expect(health.status).toBe(200);
    const slot = runner.reserve();
    ending(slow);
    expect(await slow.status).toBe(429);
    slot.release();
  });

  it.each(["/run", "/plan", "/kill", "/runs/x/interactions/y"])("is given up in time: %s", async (path) => {
    const { url } = await serveScript(saying("x"), { configuration: { server: { bodyMs: 50 } } });
    expect(await begun(url, path).status).toBe(408);
  });
});

it("a body of single bytes takes no more memory than its bytes", async () => {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const count = 1_000_000;
  const incoming = new IncomingMessage(new Socket());
  const piece = Buffer.from(" ");
  const limits = { atOnce: 10, totalBytes: 1e9, bodyMs: 600_000 };
  const value = new Bodies(limits, () => {}).json(incoming, 1e9);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let sent = 0; sent < count; sent += 1_000) {
    for (let at = 0; at < 1_000; at += 1) incoming.push(piece);
    while (incoming.readableLength > 0) await nextTurn();
  }
  collect();
  expect((process.memoryUsage().heapUsed - before) / count).toBeLessThan(4);
  incoming.push("{}");
  incoming.push(null);
  expect(await value).toEqual({});
});

it("large bodies are parsed one in each turn of the event loop, however many arrive", async () => {
  const parsed = await stepsByTurn((step) => {
    const bodies = new Bodies({ atOnce: 10, totalBytes: 1e9, bodyMs: 600_000 }, step);
    const values = Array.from({ length: 8 }, () => {
      const incoming = new IncomingMessage(new Socket());
      incoming.push(JSON.stringify("x".repeat(100_000)));
      incoming.push(null);
      return bodies.json(incoming, 1e9);
    });
    return Promise.all(values);
  });
  expect(parsed).toEqual(Array.from({ length: 8 }, () => 1));
});

describe("bodies over the limit of simultaneous ones", () => {
  it.each([
    ["by their number", { atOnce: 2, totalBytes: 1_000_000, bodyMs: 60_000 }],
    ["by their bytes", { atOnce: 100, totalBytes: 12, bodyMs: 60_000 }],
  ])("the one under way longest makes room: %s", async (_what, limits) => {
    const bodies = new Bodies(limits, () => {});
    const arrived: string[] = [];
    const { createServer } = await import("node:http");
    const server = createServer((incoming, outgoing) => {
      incoming.once("readable", () => arrived.push(incoming.url ?? ""));
      bodies.json(incoming, 1_000).then(
        () => outgoing.end(),
        (error: { readonly status?: number }) => {
          outgoing.statusCode = error.status ?? 500;
          outgoing.end();
        },
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    const opened: ReturnType<typeof begun>[] = [];
    for (const path of ["/1", "/2", "/3"]) {
      opened.push(begun(url, path));
      await expect.poll(() => arrived).toContain(path);
    }
    const [oldest, ...others] = opened;
    expect(await oldest?.status).toBe(408);
    for (const each of limits.atOnce === 2 ? others : others.slice(1)) {
      ending(each);
      expect(await each.status).toBe(200);
    }
  });
});
