import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { alive, halfOpen, statusOf } from "../../support/half-open.js";
import { saying, waiting } from "../../support/scripted-agent.js";
import { serveProcess } from "../../support/served-process.js";
import { asking, serveScript } from "../../support/server.js";

const token = "s3cret-token-of-16";
const bearer = { authorization: `Bearer ${token}` };

describe("half-open requests", () => {
  it("only displace each other: callers with a token, and new ones, are served", async () => {
    const { url, post } = await serveScript(waiting, {
      token,
      configuration: { server: { maxConnections: 32 } },
    });
    const stream = await post("/run", asking, { ...bearer, accept: "application/x-ndjson" });
    const reader = stream.body?.getReader();
    await reader?.read();
    const flood = await halfOpen(url, 300);
    // Half of 32.
    await expect.poll(() => alive(flood).length).toBeLessThanOrEqual(16);
    expect(await statusOf(`${url}/health`)).toBe(200);
    expect(await statusOf(`${url}/plugins`, { headers: bearer })).toBe(200);
    // The control: this connection was there before the flood, and would have been the first to go.
    expect((await post("/kill", { sessionId: "none" }, bearer)).status).toBe(200);
    await reader?.cancel();
  });

  it("end with the deadline of the header", async () => {
    const { url } = await serveScript(saying("x"), {
      configuration: { server: { headersTimeoutMs: 100 } },
    });
    const slow = await halfOpen(url, 3);
    expect(alive(slow)).toHaveLength(3);
    await expect.poll(() => alive(slow).length, { timeout: 20_000 }).toBe(0);
  });

  it("don't take the last descriptor", { timeout: 60_000 }, async () => {
    const { url, healthUrl, child } = await serveProcess({ token, openFiles: 320 });
    const flood = await halfOpen(url, 500);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      expect(await statusOf(`${url}/health`)).toBe(200);
      expect(await statusOf(`${healthUrl}/health`)).toBe(200);
    }
    expect(await statusOf(`${url}/plugins`, { headers: bearer })).toBe(200);
    expect(alive(flood).length).toBeLessThanOrEqual(80);
    child.kill("SIGTERM");
    await once(child, "exit");
  });
});

describe("a caller's connections", () => {
  const hash = "sha256:f1c9f6cc6a2d1f7ef63bcd8e4e65c0d6b9a4b6a9a3b6d77a1a0c1d3f1e2d3c4b";

  it("beyond a tenant's share are refused, and the operator's are not", async () => {
    const { createHash } = await import("node:crypto");
    const tenant = "tenant-token-of-16";
    const hashOf = `sha256:${createHash("sha256").update(tenant).digest("hex")}`;
    const { url } = await serveScript(saying("x"), {
      token,
      configuration: {
        server: { maxConnections: 16 },
        tokens: [
          { token: hashOf, project: "one" },
          { token: hash, project: "two" },
        ],
      },
    });
    // Its two of sixteen: each is kept by a body that doesn't arrive.
    const headers = `authorization: Bearer ${tenant}\r\ncontent-length: 10\r\n`;
    const { hostname, port } = new URL(url);
    const kept = [1, 2].map(() => {
      const socket = connect(Number(port), hostname).on("error", () => undefined);
      socket.write(`POST /plan HTTP/1.1\r\nhost: 127.0.0.1\r\n${headers}\r\n{`);
      return socket;
    });
    onTestFinished(() => {
      for (const socket of kept) socket.destroy();
    });
    const own = { headers: { authorization: `Bearer ${tenant}` } };
    await expect.poll(() => statusOf(`${url}/plugins`, own)).toBe(429);
    expect(await statusOf(`${url}/plugins`, { headers: bearer })).toBe(200);
    for (const socket of kept) socket.destroy();
    await expect.poll(() => statusOf(`${url}/plugins`, own)).toBe(200);
  });
});

describe("requests that arrive together on one connection", () => {
  /** The connection's responses, until the server ends it or all have arrived. */
  async function responsesTo(count: number): Promise<number> {
    const { url } = await serveScript(saying("x"), {});
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {
      // The server ends it while requests are still on their way.
    });
    let text = "";
    const ended = once(socket, "close");
    const all = new Promise<void>((resolve) => {
      socket.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
        if (text.split("HTTP/1.1 200").length > count) resolve();
      });
    });
    socket.write("GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(count));
    await Promise.race([ended, all]);
    return text.split("HTTP/1.1 200").length - 1;
  }

  it("are answered if they are few", async () => {
    expect(await responsesTo(8)).toBe(8);
  });

  it("end it if they are more than a client sends", async () => {
    expect(await responsesTo(1_000)).toBeLessThan(1_000);
  });
});
