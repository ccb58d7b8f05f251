import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestIssues } from "../../../src/harness/request-issues.js";
import { opencode } from "../../../src/profiles/opencode.js";
import { pi } from "../../../src/profiles/pi.js";
import { AgentStage } from "../../support/agent-stage.js";
import { eventsOf, requestOf, textOf, turnOf } from "../../support/runs.js";

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const account = "account-1";
/** Pi reads the account in it. */
const access = `${base64({ alg: "none" })}.${base64({ "https://api.openai.com/auth": { chatgpt_account_id: account } })}.s`;
const hour = 3_600_000;

const subscription = (expires: number, more: object = {}) => ({
  id: "one",
  slug: "my-chatgpt",
  provider: "chatgpt",
  version: 3,
  generation: 1,
  login: { type: "oauth", access, refresh: "the-refresh-token", expires, accountId: account },
  ...more,
});
const connection = (expires: number, more: object = {}) => ({
  provider: "openai-codex",
  credentialMode: "runtime_provided",
  credentials: [],
  subscription: subscription(expires, more),
});

describe("a login for ChatGPT", () => {
  const now = Date.UTC(2026, 10, 23);
  const issues = (modelConnection: object, profile = pi) =>
    requestIssues(profile, requestOf({ modelConnection }), {}, false, now);

  it.each<[what: string, connection: object, issue: [path: string, message: RegExp] | undefined]>([
    ["is valid for an hour", connection(now + hour), undefined],
    [
      "has expired",
      connection(now - 1),
      [".login.expires", /^expired at 2026-11-22T23:59:59.999Z: .*renew it/],
    ],
    ["expires soon", connection(now + hour / 10), [".login.expires", /^expires at 2026-11-23T00:06:00.000Z/]],
    [
      "is another provider's",
      connection(now + hour, { provider: "claude" }),
      [".provider", /must be a login/],
    ],
    [
      "has no token",
      connection(now + hour, { login: { type: "oauth", expires: 1 } }),
      [".login.access", /must be/],
    ],
    ["has an odd id", connection(now + hour, { id: "../a" }), [".id", /must be/]],
    [
      "comes with another mode",
      { ...connection(now + hour), credentialMode: "none" },
      ["", /is for credentialMode "runtime_provided"/],
    ],
  ])("that %s", (_what, given, issue) => {
    const path = `modelConnection.subscription${issue?.[0] ?? ""}`;
    const message = expect.stringMatching(issue?.[1] ?? /./);
    expect(issues(given)).toEqual(issue === undefined ? [] : [{ path, message }]);
  });

  it("is left to the plan by an agent that takes none", () => {
    expect(issues(connection(now - 1), opencode).map(({ path }) => path)).not.toContain(
      "modelConnection.subscription.login.expires",
    );
  });
});

describe("Pi, as a process", { timeout: 60_000 }, () => {
  let stage: AgentStage;
  beforeAll(async () => {
    stage = await AgentStage.open(pi);
  });
  afterAll(() => stage.close());

  it.each([
    ["xai", "XAI_API_KEY"],
    ["mistral", "MISTRAL_API_KEY"],
  ])("talks to %s with the Chat Completions that all providers know", async (provider, name) => {
    const { agent, scope } = await stage.start({
      request: stage.requestWith({
        model: `${provider}/m-1`,
        modelConnection: {
          provider,
          endpoint: { baseUrl: `${stage.model.url}/v1` },
          credentials: [{ binding: { kind: "environment", name }, value: stage.key }],
        },
      }),
    });
    expect(textOf(await eventsOf(agent, turnOf()))).toBe("Hello from the scripted model.");
    const body = stage.model.requests.at(-1)?.body;
    expect(body).toMatchObject({ model: "m-1", messages: [{ role: "system" }, { role: "user" }] });
    for (const key of ["store", "max_completion_tokens"]) expect(body).not.toHaveProperty(key);
    await scope.close();
  });

  it("uses a login without the token that renews it", async () => {
    const seen: { path: string | undefined; authorization: string | undefined; account: unknown }[] = [];
    // ChatGPT's own API: the Responses API at another path, with compressed bodies.
    const server = createServer(async (request, response) => {
      const { authorization, "chatgpt-account-id": id } = request.headers;
      seen.push({ path: request.url, authorization, account: id });
      const raw = await buffer(request);
      const body = request.headers["content-encoding"] === "zstd" ? zstdDecompressSync(raw) : raw;
      const headers = { "content-type": "application/json", authorization: `Bearer ${stage.key}` };
      const answer = await fetch(`${stage.model.url}/v1/responses`, { method: "POST", headers, body });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(await answer.text());
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const endpoint = { baseUrl: `http://127.0.0.1:${port}` };
      const { agent, scope } = await stage.start({
        request: {
          model: "openai-codex/gpt-7-unheard-of",
          modelConnection: { ...connection(Date.now() + hour), endpoint },
        },
      });
      expect(textOf(await eventsOf(agent, turnOf()))).toBe("Hello from the scripted model.");
      expect(seen).toEqual([{ path: "/codex/responses", authorization: `Bearer ${access}`, account }]);
      const names = await readdir(stage.sandbox.home, { recursive: true, withFileTypes: true });
      const files = await Promise.all(
        names.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), "utf8")),
      );
      expect(files.filter((text) => text.includes(access))).toHaveLength(1);
      expect(files.join()).not.toContain("the-refresh-token");
      await scope.close();
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
