import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  boundary,
  type ConsoleServer,
  demo,
  operatorToken,
  startConsoleServer,
} from "./support/console-server.js";

const tenantToken = "ambit_of-a-tenant-that-is-long-enough";
let server: ConsoleServer;

beforeAll(async () => {
  const token = `sha256:${createHash("sha256").update(tenantToken).digest("hex")}`;
  server = await startConsoleServer({ tokens: [{ token, project: "acme" }] });
});

afterAll(async () => {
  await server.close();
});

/** What a signed-in page sends with each request. */
type Signed = Readonly<Record<"cookie" | "x-ambit-console", string>>;

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${server.url}${path}`, { headers });

async function signIn(body: object): Promise<Signed> {
  const response = await post("/console/session", body);
  const { proof } = JSON.parse(await response.text());
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";");
  return { cookie, "x-ambit-console": proof };
}

async function codeOf(role: "viewer" | "answerer" | "operator"): Promise<string> {
  return new URL(await server.link(role)).hash.replace("#code=", "");
}

describe("the page", () => {
  it("allows no inline script or style, no frame, and nothing of another origin", async () => {
    const response = await get("/console");
    const policy = response.headers.get("content-security-policy");
    expect(response.status).toBe(200);
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain(
      "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    const html = await response.text();
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
    expect(html.match(/(?:src|href)="(?!\/console\/)/g)).toBeNull();
  });

  it("says what isn't there, and is only read", async () => {
    expect((await get("/console/assets/%2e%2e%2f%2e%2e%2fpackage.json")).status).toBe(404);
    expect((await get("/console/assets/none.js")).status).toBe(404);
    expect((await post("/console/", {})).status).toBe(405);
  });
});

describe("a session", () => {
  it("is exchanged for a token, in a cookie that no script reads and no other site sends", async () => {
    const response = await post("/console/session", { token: operatorToken });
    expect(response.headers.get("set-cookie")).toMatch(
      /; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    expect(await response.json()).toMatchObject({
      signedIn: true,
      role: "operator",
      proof: expect.any(String),
    });
    expect((await post("/console/session", { token: "not-a-token-of-this-server" })).status).toBe(401);
  });

  it("is signed in to by a link once", async () => {
    const code = await codeOf("operator");
    expect((await post("/console/session", { code })).status).toBe(200);
    const second = await post("/console/session", { code });
    expect(second.status).toBe(401);
    expect(await second.json()).toMatchObject({ error: expect.stringContaining("ambit console") });
  });

  it("counts only with its proof, which a page of another origin doesn't have", async () => {
    const signed = await signIn({ token: operatorToken });
    expect((await get("/runs", signed)).status).toBe(200);
    expect((await get("/runs", { cookie: signed.cookie })).status).toBe(401);
    expect((await get("/runs", { ...signed, "x-ambit-console": "forged" })).status).toBe(401);
    const other = await signIn({ token: operatorToken });
    expect((await get("/runs", { ...signed, "x-ambit-console": other["x-ambit-console"] })).status).toBe(401);
  });

  it("is refused to another origin's page, even with cookie and proof", async () => {
    const signed = await signIn({ token: operatorToken });
    const plan = (headers: Readonly<Record<string, string>>) =>
      post("/plan", demo(["say x"]), { ...signed, ...headers });
    expect((await plan({ origin: server.url })).status).toBe(200);
    const port = Number(new URL(server.url).port);
    for (const origin of ["https://evil.example", `http://127.0.0.1:${port + 1}`, "null"])
      expect((await plan({ origin })).status).toBe(403);
    expect((await plan({ "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await plan({ "sec-fetch-site": "same-site" })).status).toBe(403);
    const stolen = await post(
      "/console/session",
      { token: operatorToken },
      { origin: "https://evil.example" },
    );
    expect(stolen.status).toBe(403);
  });

  it("can't be changed by its holder", async () => {
    const signed = await signIn({ code: await codeOf("viewer") });
    const [name = "", value = ""] = signed.cookie.split("=");
    const [content = "", signature = ""] = value.split(".");
    const session = JSON.parse(Buffer.from(content, "base64url").toString());
    const forged = Buffer.from(JSON.stringify({ ...session, role: "operator" })).toString("base64url");
    expect((await get("/runs", signed)).status).toBe(200);
    expect((await get("/runs", { ...signed, cookie: `${name}=${forged}.${signature}` })).status).toBe(401);
  });

  it("of a tenant sees its project only", async () => {
    await server.client.run(demo(["say of the operator"], { runId: "of-the-operator" })).result;
    const signed = await signIn({ token: tenantToken });
    expect(await (await get("/console/session", signed)).json()).toMatchObject({ project: "acme" });
    expect((await get("/runs/of-the-operator", signed)).status).toBe(404);
    expect(await (await get("/runs", signed)).json()).toEqual({ runs: [] });
    expect((await get("/metrics", signed)).status).toBe(403);
    expect((await get("/runs/of-the-operator", await signIn({ token: operatorToken }))).status).toBe(200);
  });
});

describe("a role", () => {
  it.each([
    { role: "viewer", reads: 200, answers: 403, starts: 403, links: 403 },
    { role: "answerer", reads: 200, answers: 404, starts: 403, links: 403 },
    { role: "operator", reads: 200, answers: 404, starts: 200, links: 200 },
  ] as const)("$role may do what it says, and no more", async ({ role, reads, answers, starts, links }) => {
    const signed = await signIn({ code: await codeOf(role) });
    expect((await get("/runs", signed)).status).toBe(reads);
    expect((await post("/plan", demo(["say x"], { sandboxPermission: boundary }), signed)).status).not.toBe(
      403,
    );
    expect((await post("/runs/none/interactions/none", { approved: true }, signed)).status).toBe(answers);
    expect((await post("/run", demo(["say x"]), signed)).status).toBe(starts);
    expect((await post("/console/links", {}, signed)).status).toBe(links);
  });
});

describe("a token of a user's page", () => {
  const asked = { sessionId: "s", may: ["read"], projectId: "acme" };

  it("signs in to no console, and only an operator's session makes one", async () => {
    const operator = { authorization: `Bearer ${operatorToken}` };
    const { token } = JSON.parse(await (await post("/tokens", asked, operator)).text());
    expect((await post("/console/links", {}, { authorization: `Bearer ${token}` })).status).toBe(403);
    expect((await post("/console/session", { token })).status).toBe(401);
    expect((await post("/tokens", asked, await signIn({ code: await codeOf("answerer") }))).status).toBe(403);
    // The controls.
    expect((await post("/console/links", {}, operator)).status).toBe(200);
    expect((await post("/tokens", asked, await signIn({ code: await codeOf("operator") }))).status).toBe(200);
  });
});
