import { describe, expect, it } from "vitest";
import { call, say, startModelServer } from "../src/index.js";
import { API_CASES, KEY_HEADERS, post } from "./requests.js";

describe.each(API_CASES)("errors of $api", ({ api, path, body, keyHeader }) => {
  const shapes = {
    anthropic: (_status: number, word: string) => ({
      type: "error",
      error: { type: word, message: expect.any(String) },
      request_id: expect.stringMatching(/^req_/),
    }),
    "openai-chat": openaiShape,
    "openai-responses": openaiShape,
    gemini: (code: number, status: string) => ({ error: { code, message: expect.any(String), status } }),
  };
  const words = {
    anthropic: {
      400: "invalid_request_error",
      401: "authentication_error",
      429: "rate_limit_error",
      500: "api_error",
      529: "overloaded_error",
    },
    "openai-chat": openaiWords(),
    "openai-responses": openaiWords(),
    gemini: {
      400: "INVALID_ARGUMENT",
      401: "UNAUTHENTICATED",
      429: "RESOURCE_EXHAUSTED",
      500: "INTERNAL",
      529: "UNAVAILABLE",
    },
  };

  it.each([400, 401, 429, 500, 529] as const)("have their own shape for %i", async (status) => {
    await using server = await startModelServer();
    const response = await post(server.url + path(true), body(`[[http ${status}]]`, true));
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual(shapes[api](status, words[api][status]));
  });

  it("accept the expected key at each place, and no other", async () => {
    await using server = await startModelServer({ expectedKey: "right-key" });
    const url = server.url + path(false);
    const ask = (headers: Record<string, string>) => post(url, body("hello", false), { headers });
    for (const header of KEY_HEADERS) {
      expect((await ask(header("right-key"))).status).toBe(200);
      const refused = await ask(header("wrong-key"));
      expect(refused.status).toBe(401);
      expect(await refused.json()).toEqual(shapes[api](401, words[api][401]));
    }
    expect((await ask({})).status).toBe(401);
    const inQuery = `${url}${url.includes("?") ? "&" : "?"}key=right-key`;
    expect((await post(inQuery, body("hello", false))).status).toBe(200);
  });

  it("record the key, and whether it was refused", async () => {
    await using server = await startModelServer({ expectedKey: "right-key" });
    await post(server.url + path(false), body("hello", false), { headers: keyHeader("wrong-key") });
    const refused = await server.waitFor(({ finished }) => finished);
    expect(refused).toMatchObject({ api, credentials: ["wrong-key"], status: 401, aborted: false });
    expect(refused.answer).toBeUndefined();
  });

  it("include a stream that is cut in the middle", async () => {
    await using server = await startModelServer();
    const response = await post(server.url + path(true), body("[[drop]]", true));
    const reader = response.body?.getReader();
    let received = "";
    const readAll = async () => {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) return;
        received += new TextDecoder().decode(value);
      }
    };
    await expect(readAll()).rejects.toThrow("terminated");
    expect(received).toContain("This ");
    expect(received).not.toContain("middle.");
    expect(await server.waitFor(({ finished }) => finished)).toMatchObject({ aborted: false });
  });
});

describe("a client that disconnects", () => {
  const [anthropic] = API_CASES;
  it.each(["[[hang]]", "[[slow 500 20]]"])("is recorded for %s", async (prompt) => {
    if (anthropic === undefined) throw new Error("No case");
    await using server = await startModelServer();
    const leaving = new AbortController();
    const asked = post(server.url + anthropic.path(true), anthropic.body(prompt, true), {
      signal: leaving.signal,
    });
    const read = asked.then((response) => response.text());
    const arrived = await server.waitFor(({ answer }) => answer !== undefined);
    expect(arrived).toMatchObject({ lastUserText: prompt, finished: false, aborted: false });
    leaving.abort();
    await expect(read).rejects.toThrow();
    expect(await server.waitFor(({ finished }) => finished)).toMatchObject({ aborted: true });
  });
});

describe("a script of answers", () => {
  it("is taken in order, and after the last an error names the fix", async () => {
    const [apiCase] = API_CASES;
    if (apiCase === undefined) throw new Error("No case");
    await using server = await startModelServer({
      script: [call("add", { a: 2 }), say("done"), { kind: "http", status: 403, message: "not today" }],
    });
    const ask = async () => (await post(server.url + apiCase.path(false), apiCase.body("x", false))).text();
    expect(await ask()).toContain('"name":"mcp__ambit__add","input":{"a":2}');
    expect(await ask()).toContain('"text":"done"');
    expect(await ask()).toMatch(/permission_error.*not today/);
    expect(await ask()).toMatch(/api_error.*add an answer/);
  });

  it("can be a function of the turn", async () => {
    const [apiCase] = API_CASES;
    if (apiCase === undefined) throw new Error("No case");
    await using server = await startModelServer({
      script: (turn, index) => say(`${turn.model} ${index} ${turn.tools.length}`),
    });
    const answer = await post(server.url + apiCase.path(false), apiCase.body("x", false));
    expect(await answer.text()).toContain('"the-model 0 2"');
  });
});

describe("other endpoints", () => {
  it.each([
    ["/v1/models", {}, { object: "list", data: [{ id: "one" }, { id: "two" }] }],
    [
      "/v1/models",
      { "anthropic-version": "2023-06-01" },
      { has_more: false, first_id: "one", last_id: "two" },
    ],
    ["/v1beta/models", {}, { models: [{ name: "models/one" }, { name: "models/two" }] }],
  ])("lists models at %s with %j", async (path, headers, list) => {
    await using server = await startModelServer({ models: ["one", "two"] });
    const response = await fetch(server.url + path, { headers });
    expect(await response.json()).toMatchObject(list);
  });

  it.each([
    ["/v1/messages/count_tokens", { input_tokens: 1000 }],
    ["/v1beta/models/m:countTokens", { totalTokens: 1000 }],
  ])("counts tokens at %s", async (path, count) => {
    await using server = await startModelServer();
    expect(await (await post(server.url + path, {})).json()).toEqual(count);
    expect(server.requests).toMatchObject([{ operation: "count-tokens" }]);
  });

  it("respond with 404 elsewhere, without echoing the query", async () => {
    await using server = await startModelServer();
    const response = await fetch(`${server.url}/elsewhere?key=secret`);
    expect(response.status).toBe(404);
    const text = await response.text();
    expect(text).toContain("No such endpoint: GET /elsewhere");
    expect(text).not.toContain("secret");
  });

  it("respond with 400 to a body that isn't JSON", async () => {
    await using server = await startModelServer();
    const response = await fetch(`${server.url}/v1/messages`, { method: "POST", body: "{" });
    expect(response.status).toBe(400);
  });
});

describe("closing", () => {
  it("cuts hanging requests and frees the port, and can be repeated", async () => {
    const [apiCase] = API_CASES;
    if (apiCase === undefined) throw new Error("No case");
    const server = await startModelServer();
    const hanging = post(server.url + apiCase.path(true), apiCase.body("[[hang]]", true));
    const failed = expect(hanging).rejects.toThrow();
    await server.waitFor(({ answer }) => answer?.kind === "hang");
    await Promise.all([server.close(), server.close()]);
    await failed;
    await using next = await startModelServer({ port: server.port });
    expect(next.port).toBe(server.port);
    await expect(startModelServer({ port: next.port })).rejects.toThrow("EADDRINUSE");
  });
});

function openaiShape(_status: number, word: string) {
  const [type, code = null] = word.split("/");
  return { error: { message: expect.any(String), type, param: null, code } };
}

function openaiWords() {
  return {
    400: "invalid_request_error",
    401: "invalid_request_error/invalid_api_key",
    429: "requests/rate_limit_exceeded",
    500: "server_error",
    529: "server_error",
  };
}
