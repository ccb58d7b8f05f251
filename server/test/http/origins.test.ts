import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { configurationSchema } from "../../src/configuration/schema.js";
import { routes } from "../../src/http/routes.js";
import { saying } from "../support/scripted-agent.js";
import { asking, serveScript } from "../support/server.js";

const token = "operators-own-token";
const bearer = { authorization: `Bearer ${token}` };
const origin = "https://app.example.com";

/** As a browser sends it; fetch sets some of these headers itself. */
function ask(url: string, method: string, headers: Readonly<Record<string, string>>, body = "") {
  return new Promise<{ readonly status: number; readonly headers: Readonly<Record<string, unknown>> }>(
    (resolve, reject) => {
      const sent = request(url, { method, headers }, (response) => {
        response.resume();
        response.once("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
      });
      sent.once("error", reject).end(body);
    },
  );
}

const preflight = {
  "access-control-request-method": "POST",
  "access-control-request-headers": "authorization",
};
const serve = (server: object) => serveScript(saying("x"), { token, configuration: { server } });

describe("a server that lists an origin", () => {
  it("answers its pages on every route, and their preflight without a token or a handler", async () => {
    const { url, runner } = await serve({ origins: [origin] });
    for (const { method, path } of routes) {
      const concrete = `${url}${path.replaceAll(/\{\w+\*?\}/g, "x")}`;
      const asked = await ask(concrete, "OPTIONS", { origin, ...preflight });
      expect([path, asked.status, asked.headers]).toMatchObject([
        path,
        204,
        {
          "access-control-allow-origin": origin,
          vary: "Origin",
          "access-control-allow-methods": "GET, POST, DELETE",
        },
      ]);
      expect(asked.headers["access-control-allow-headers"]).toMatch(/authorization, content-type/);
      // Refused for lack of a token, or found missing: its page reads why.
      const answer = await ask(concrete, method, { origin });
      expect([path, answer.headers]).toMatchObject([
        path,
        {
          "access-control-allow-origin": origin,
          "access-control-expose-headers": "x-ambit-run-id, retry-after, location",
          vary: "Origin",
        },
      ]);
    }
    expect(runner.sessions).toEqual([]);
    const run = await ask(`${url}/stream`, "POST", { origin, ...bearer }, JSON.stringify(asking));
    expect([run.status, run.headers]).toMatchObject([200, { "access-control-allow-origin": origin }]);
    expect(run.headers["x-ambit-run-id"]).toBeTypeOf("string");
  });

  it.each([
    ["an origin that isn't listed", { origin: "https://evil.example.com" }],
    ["another port of a listed host", { origin: `${origin}:8443` }],
    ["a listed host without TLS", { origin: "http://app.example.com" }],
    ["a sandboxed page", { origin: "null" }],
    ["a name that was rebound to this machine", { origin, host: "evil.example.com" }],
    [
      "a rebound name that calls itself its own origin",
      { origin: "http://evil.example.com", host: "evil.example.com" },
    ],
  ])("refuses %s as before", async (_, headers) => {
    const { url } = await serve({ origins: [origin] });
    for (const [method, extra] of [
      ["OPTIONS", preflight],
      ["POST", bearer],
      ["GET", bearer],
    ] as const) {
      const refused = await ask(`${url}/runs`, method, { ...extra, ...headers });
      expect(refused.status).toBe(403);
      expect(refused.headers).not.toHaveProperty("access-control-allow-origin");
    }
    // The control.
    expect((await ask(`${url}/runs`, "GET", { ...bearer, origin })).status).toBe(200);
  });

  it("is called under a listed name too, beside a page of that name", async () => {
    const { url } = await serve({ origins: [origin], allowedHosts: ["proxy.example.com"] });
    const host = "proxy.example.com";
    const listed = await ask(`${url}/runs`, "GET", { ...bearer, origin, host });
    expect([listed.status, listed.headers["access-control-allow-origin"]]).toEqual([200, origin]);
    const own = await ask(`${url}/runs`, "GET", { ...bearer, origin: "https://proxy.example.com", host });
    expect([own.status, own.headers["access-control-allow-origin"]]).toEqual([200, undefined]);
    expect(own.headers.vary).toBe("Origin");
  });

  it("that other machines reach lets no page of another origin read an answer", async () => {
    const { url } = await serve({ host: "0.0.0.0", origins: [origin] });
    const at = url.replace("0.0.0.0", "127.0.0.1");
    const foreign = { origin: "https://evil.example.com" };
    expect((await ask(`${at}/runs`, "OPTIONS", { ...foreign, ...preflight })).status).toBe(401);
    const answer = await ask(`${at}/runs`, "GET", { ...foreign, ...bearer });
    expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
    expect((await ask(`${at}/runs`, "OPTIONS", { origin, ...preflight })).status).toBe(204);
  });
});

it("says nothing of origins where none is listed", async () => {
  const { url } = await serve({});
  const { headers } = await ask(`${url}/health`, "GET", {});
  expect(headers).not.toHaveProperty("vary");
  expect((await ask(`${url}/runs`, "OPTIONS", { origin, ...preflight })).status).toBe(403);
});

describe("server.origins", () => {
  it.each([
    ["*", "https://app.example.com"],
    ["https://*.example.com", "https://app.example.com"],
    ["https://app.example.com/", "https://app.example.com"],
    ["https://App.example.com", "https://app.example.com"],
    ["http://app.example.com:80", "http://app.example.com"],
    ["https://user@app.example.com", "https://app.example.com"],
    ["app.example.com", "https://app.example.com"],
    ["null", "https://app.example.com"],
    ["file:///tmp", "https://app.example.com"],
  ])("refuses %s with its fix", (given, fix) => {
    const { error } = configurationSchema.safeParse({ server: { origins: [given] } });
    expect(error?.issues).toMatchObject([
      { path: ["server", "origins", 0], message: expect.stringContaining(`such as ${fix}:`) },
    ]);
  });

  it("takes exact origins", () => {
    const origins = ["https://app.example.com", "http://localhost:3000", "http://[::1]:3000"];
    expect(configurationSchema.parse({ server: { origins } }).server.origins).toEqual(origins);
  });
});

describe("server.publicUrl", () => {
  it.each([
    "https://ambit.example.com/",
    "https://ambit.example.com?a=b",
    "ftp://ambit.example.com",
    "ambit",
  ])("refuses %s, below which no file is", (publicUrl) => {
    const { error } = configurationSchema.safeParse({ server: { publicUrl } });
    expect(error?.issues[0]?.path).toEqual(["server", "publicUrl"]);
  });

  it("takes an address with a path", () => {
    const publicUrl = "https://example.com/ambit";
    expect(configurationSchema.parse({ server: { publicUrl } }).server).toMatchObject({ publicUrl });
  });
});
