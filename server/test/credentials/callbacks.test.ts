import { createServer, type RequestListener } from "node:http";
import { listening } from "@ambit/fakes/listening";
import { describe, expect, it, onTestFinished } from "vitest";
import { credentialSettingsSchema } from "../../src/configuration/schema.js";
import { CredentialCallbacks } from "../../src/credentials/callbacks.js";

const settings = (privateHosts: "allow" | "refuse" | "auto", allowedRanges: readonly string[] = []) =>
  credentialSettingsSchema.parse({ privateHosts, allowedRanges });
const open = new CredentialCallbacks(settings("allow"), false);
const closed = new CredentialCallbacks(settings("refuse"), false);
const minted = JSON.stringify({ value: "a-new-value", expiresAt: "2026-01-31T12:00:00Z" });

/** A platform on loopback that keeps what it was asked. */
async function platform(respond: RequestListener = (_request, response) => void response.end(minted)) {
  const requests: { method?: string; url?: string; authorization?: string; type?: string; body: string }[] =
    [];
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { authorization } = headers;
    const kept = { method, url, authorization, type: headers["content-type"], body };
    requests.push(JSON.parse(JSON.stringify(kept)));
    respond(request, response);
  });
  return { requests, port: await listening(server, onTestFinished) };
}

const ask = (callbacks: CredentialCallbacks, url: string, signal = AbortSignal.timeout(10_000)) =>
  callbacks.ask(
    { url: new URL(url), authorization: "Bearer platform-key", body: '{"name":"TOKEN"}' },
    signal,
  );

describe("a callback for a new value", { retry: 0 }, () => {
  it("posts the question with the platform's own credential", async () => {
    const { requests, port } = await platform();
    await expect(ask(open, `http://127.0.0.1:${port}/mint?id=1`)).resolves.toEqual({
      status: 200,
      body: minted,
    });
    expect(requests).toEqual([
      {
        method: "POST",
        url: "/mint?id=1",
        authorization: "Bearer platform-key",
        type: "application/json",
        body: '{"name":"TOKEN"}',
      },
    ]);
  });

  it.each(["127.0.0.1", "2130706433", "localhost"])(
    "reaches %s only where the operator allows private addresses",
    async (host) => {
      const { requests, port } = await platform();
      const url = `http://${host}:${port}/`;
      await expect(ask(closed, url)).rejects.toThrow("has an address that is refused");
      expect(requests).toEqual([]);
      await expect(ask(open, url)).resolves.toMatchObject({ status: 200 });
      const listed = new CredentialCallbacks(settings("refuse", ["127.0.0.0/8", "::1"]), true);
      await expect(ask(listed, url)).resolves.toMatchObject({ status: 200 });
    },
  );

  it("follows no redirect", async () => {
    const { requests, port } = await platform((_request, response) => {
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    await expect(ask(open, `http://127.0.0.1:${port}/`)).resolves.toMatchObject({ status: 307 });
    expect(requests).toHaveLength(1);
  });

  it("reads 16 KiB of a response at most", async () => {
    const { port } = await platform((_request, response) => void response.end("x".repeat(16 * 1_024 + 1)));
    await expect(ask(open, `http://127.0.0.1:${port}/`)).rejects.toThrow("could not be read");
  });

  it("ends with its signal", async () => {
    const { port } = await platform(() => {});
    const signal = AbortSignal.timeout(100);
    await expect(ask(open, `http://127.0.0.1:${port}/`, signal)).rejects.toBe(await reasonOf(signal));
  });

  it("says why the platform was not reached, without the address", async () => {
    await expect(ask(open, "http://127.0.0.1:1/secret-path")).rejects.toMatchObject({
      message: "could not be reached (ECONNREFUSED)",
    });
  });
});

describe("a callback's address is refused before the run", () => {
  it.each([
    ["https://127.0.0.1/", closed, /loopback/],
    ["http://10.0.0.1/", closed, /private/],
    ["https://169.254.169.254/", open, /metadata/],
    ["http://8.8.8.8/", open, /8\.8\.8\.8 is public, and the value would be sent unencrypted: use https/],
    ["http://8.8.8.8/", closed, /use https/],
    ["http://10.0.0.1/", new CredentialCallbacks(settings("auto"), true), /private/],
  ])("%s", (url, callbacks, reason) => {
    expect(callbacks.whyRefused(new URL(url))).toMatch(reason);
  });

  it.each([
    ["https://8.8.8.8/", closed],
    ["https://platform.example.com/", closed],
    ["http://platform.example.com/", closed],
    ["http://10.0.0.1/", open],
    ["http://10.0.0.1/", new CredentialCallbacks(settings("auto"), false)],
  ])("but not %s", (url, callbacks) => {
    expect(callbacks.whyRefused(new URL(url))).toBeUndefined();
  });
});

function reasonOf(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}
