import { describe, expect, it } from "vitest";
import { directPathProblem } from "../src/call.js";
import { call, executorOf, requestOf } from "./calls.js";
import { startPlatform } from "./platform.js";

const runContext = {
  run: { kind: "test" },
  project: { id: "p1" },
  workflow: { variant: { id: "v1" }, is_draft: false },
};

/** What arrives for a tool's call: `METHOD path body`, or the text the model gets. */
async function arrives(
  tool: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>> = {},
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const platform = await startPlatform((_request, response) => response.end('{"done":true}'));
  const outcome = await call({
    endpoint: `${platform.origin}/api/tools/call`,
    tool,
    given,
    request: { runContext, ...more },
  });
  const [received] = platform.received;
  if (received === undefined) return "output" in outcome ? outcome.output : outcome.status;
  expect(outcome).toMatchObject({ status: "completed" });
  expect(received.headers.authorization).toBe("Access tok-123");
  return `${received.method} ${received.url} ${received.body}`.trim();
}

describe("a direct call", () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>, string]>([
    [
      "posts the model's arguments",
      { call: { method: "POST", path: "/api/x" } },
      { city: "Bern" },
      'POST /api/x {"city":"Bern"}',
    ],
    [
      "puts them where the tool says, as in the reference's golden request",
      {
        call: {
          method: "POST",
          path: "/api/workflows/invoke",
          body: { references: { workflow_revision: { id: "rev_abc123" } } },
          args_into: "data.inputs",
        },
      },
      { city: "Bern" },
      'POST /api/workflows/invoke {"data":{"inputs":{"city":"Bern"}},"references":{"workflow_revision":{"id":"rev_abc123"}}}',
    ],
    [
      "lets the fixed body win over the arguments, key by key",
      { call: { method: "PUT", path: "/api/x", body: { target: { id: "fixed" } } } },
      { target: { id: "mine", note: "n" }, city: "Bern" },
      'PUT /api/x {"target":{"id":"fixed","note":"n"},"city":"Bern"}',
    ],
    [
      "lets the run's context win over both",
      {
        call: {
          method: "POST",
          path: "/api/x",
          body: { project: { id: "fixed" } },
          context: { "project.id": "$ctx.project.id", draft: "$ctx.workflow.is_draft" },
        },
      },
      { project: { id: "mine" }, draft: { deep: true } },
      'POST /api/x {"project":{"id":"p1"},"draft":false}',
    ],
    [
      "takes path parameters out of the body",
      { call: { method: "POST", path: "/api/schedules/{id}/stop" } },
      { id: "a b", why: "late" },
      'POST /api/schedules/a%20b/stop {"why":"late"}',
    ],
    [
      "takes a path parameter from the context, not from the model",
      {
        call: {
          method: "POST",
          path: "/api/projects/{project.id}",
          context: { "project.id": "$ctx.project.id" },
        },
      },
      { project: { id: "other" } },
      'POST /api/projects/p1 {"project":{}}',
    ],
    [
      "puts what remains into the query of a GET",
      { call: { method: "GET", path: "/api/x/{id}?fixed=1" } },
      { id: 7, fixed: "2", q: "a&b c", tags: ["x", "y"], deep: { a: 1 }, none: null, yes: true },
      `GET /api/x/7?fixed=1&q=a%26b+c&tags=x&tags=y&deep=${encodeURIComponent('{"a":1}')}&yes=true`,
    ],
    [
      "does the same for a DELETE",
      { call: { method: "DELETE", path: "/api/x/{id}" } },
      { id: true },
      "DELETE /api/x/true",
    ],
    [
      "keeps arguments meant for the reader from the platform",
      { call: { method: "POST", path: "/api/x", args_into: "in" }, ephemeralArgs: ["description"] },
      { description: "why", deep: { description: "kept" } },
      'POST /api/x {"in":{"deep":{"description":"kept"}}}',
    ],
  ])("%s", async (_what, tool, given, expected) => {
    expect(await arrives(tool, given)).toBe(expected);
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>, RegExp]>([
    [
      "a binding without a value",
      { call: { method: "POST", path: "/api/x", context: { a: "$ctx.trace.id" } } },
      {},
      /no value for 'a'/,
    ],
    [
      "a binding to an inherited key",
      { call: { method: "POST", path: "/api/x", context: { a: "$ctx.run.toString" } } },
      {},
      /no value for 'a'/,
    ],
    ["a missing path parameter", { call: { method: "GET", path: "/api/{id}" } }, {}, /'id' is needed/],
    [
      "an object as a path parameter",
      { call: { method: "GET", path: "/api/{id}" } },
      { id: {} },
      /'id' is needed/,
    ],
    [
      "an unsafe key",
      { call: { method: "POST", path: "/api/x" } },
      JSON.parse('{"a":{"__proto__":{"admin":true}}}'),
      /a key '__proto__'/,
    ],
    [
      "a constructor key",
      { call: { method: "POST", path: "/api/x" } },
      { constructor: { prototype: {} } },
      /a key 'constructor'/,
    ],
    [
      "a query that no server takes",
      { call: { method: "GET", path: "/api/x" } },
      { q: "x".repeat(9_000) },
      /too long for a GET/,
    ],
    ...["..", ".", "", "a/b", "a\\b", "../x", "%2e%2e", "a%2Fb", "..%2f", "\u0000", "a\nb", "\ud800"].map(
      (id): [string, Record<string, unknown>, Record<string, unknown>, RegExp] => [
        `the path parameter ${JSON.stringify(id)}`,
        { call: { method: "GET", path: "/api/x/{id}/y" } },
        { id },
        /'id' is part of the path/,
      ],
    ),
  ])("refuses %s, and sends nothing", async (_what, tool, given, expected) => {
    expect(await arrives(tool, given)).toMatch(expected);
  });

  it("doesn't change Object.prototype, nor the request's values", async () => {
    const request = requestOf({
      endpoint: "http://127.0.0.1:9/",
      tool: { call: { method: "POST", path: "/x", body: { a: {} }, context: { "a.b": "$ctx.project.id" } } },
      request: { runContext },
    });
    const before = JSON.stringify(request);
    await call({
      endpoint: "http://127.0.0.1:9/",
      tool: { ...request.customTools[0], callRef: undefined },
      request: { runContext },
    });
    expect(JSON.stringify(request)).toBe(before);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it("returns the body unchanged, and fails on any status but 2xx", async () => {
    const tool = { call: { method: "POST", path: "/x" } };
    const ok = await startPlatform((_request, response) => response.end('{"call":{"data":{"content":"x"}}}'));
    expect(await call({ endpoint: `${ok.origin}/cb`, tool })).toEqual({
      status: "completed",
      output: '{"call":{"data":{"content":"x"}}}',
    });
    const moved = await startPlatform((_request, response) =>
      response.writeHead(307, { location: ok.origin }).end(),
    );
    expect(await call({ endpoint: `${moved.origin}/cb`, tool })).toMatchObject({ status: "failed" });
    expect(ok.received).toHaveLength(1);
  });
});

describe("a direct call's path", () => {
  const endpoint = new URL("https://host.example/api/tools/call");
  it.each(["/api/x", "/api/x/{id}", "/api/{a.b}/x?y=1&z={q}", "/api/x%20y", "/api/x:run", "/api"])(
    "%s is fine",
    (path) => {
      expect(directPathProblem(path, endpoint)).toBeUndefined();
    },
  );
  it.each([
    "api/x",
    "//evil.example/api",
    "/\\evil.example/api",
    "https://evil.example/api",
    "/api/../admin",
    "/api/%2e%2e/admin",
    "/api/%2E%2e/admin",
    "/api/.%2e/admin",
    "/api/%252e%252e/admin",
    "/api/x%2fy",
    "/api/x%5cy",
    "/api/x%00",
    "/api/x y",
    "/api/x\ty",
    "/api/x\r\nhost: evil",
    "/api/x#y",
    "/api/./x",
    "/admin",
    "/apix",
    "/api/{}",
    "/api/{a/b}",
    "/api/é",
    "",
  ])("%j is refused", (path) => {
    expect(directPathProblem(path, endpoint)).toEqual(expect.any(String));
  });
  it("may be anywhere on the origin if the endpoint isn't below a mount", () => {
    expect(directPathProblem("/anything", new URL("http://host:8000/tools/call"))).toBeUndefined();
    expect(directPathProblem("/anything", new URL("http://host:8000/cb"))).toBeUndefined();
  });
});

describe("the id of a call", () => {
  it("is its idempotency key, whatever the model and the request say", async () => {
    const context = { id: "$ctx.tool.call_id", session: "$ctx.session.id" };
    const sent = await arrives(
      { call: { method: "POST", path: "/api/x", context } },
      { id: "the model's" },
      { sessionId: "s", runContext: { run: { kind: "test" }, tool: { call_id: "forged" } } },
    );
    expect(sent).toBe('POST /api/x {"id":"key-1","session":"s"}');
  });
});

describe("a callback's arguments", () => {
  it("are bound to the run's context, without fields for the reader", async () => {
    const tool = {
      contextBindings: { "target.variant": "$ctx.workflow.variant.id", session: "$ctx.session.id" },
      ephemeralArgs: ["description"],
    };
    const given = { description: "why", target: { variant: "mine", rest: 1 } };
    const sent = await arrives(tool, given, { sessionId: "sess-1" });
    expect(JSON.parse(sent.slice(sent.indexOf("{"))).data.function.arguments).toEqual({
      target: { variant: "v1", rest: 1 },
      session: "sess-1",
    });
    expect(given).toEqual({ description: "why", target: { variant: "mine", rest: 1 } });
  });

  it("aren't sent if a binding has no value", async () => {
    expect(await arrives({ contextBindings: { a: "$ctx.trace.trace_id" } })).toBe(
      "Tool 'weather' failed: the run's context has no value for 'a', which the tool binds to it.",
    );
  });
});

describe("issues", () => {
  const endpoint = "http://127.0.0.1:9/api/tools/call";
  const issuesOf = (tool: Record<string, unknown>, more: Record<string, unknown> = {}, config = {}) => {
    const request = requestOf({ endpoint, tool, request: more });
    const [first] = request.customTools;
    if (first === undefined) throw new TypeError("the request has no tool");
    return executorOf({ config }).issues({ tool: first, request });
  };
  const direct = (call: Record<string, unknown>) => ({ call: { method: "POST", path: "/api/x", ...call } });

  it("finds nothing wrong with a complete tool", () => {
    expect(issuesOf({})).toEqual([]);
    expect(
      issuesOf(direct({ body: { a: 1 }, context: { "a.b": "$ctx.project.id" }, args_into: "a.c" })),
    ).toEqual([]);
  });

  it.each<[string, Record<string, unknown>, Record<string, unknown>, string, RegExp]>([
    ["neither callRef nor call", { callRef: undefined }, {}, "callRef", /is required/],
    ["both", { ...direct({}), callRef: "x" }, {}, "call", /excludes callRef/],
    ["no endpoint", {}, { toolCallback: undefined }, "", /needs toolCallback.endpoint/],
    [
      "a header beyond Latin-1",
      {},
      { toolCallback: { endpoint, authorization: "Bearer 語" } },
      "",
      /authorization can't be sent/,
    ],
    [
      "a run kind that would split",
      {},
      { runContext: { run: { kind: "a\nb" } } },
      "",
      /run.kind can't be sent/,
    ],
    ["a metadata endpoint", {}, { toolCallback: { endpoint: "http://169.254.169.254/" } }, "", /metadata/],
    ["a path that leaves the mount", direct({ path: "/admin" }), {}, "call.path", /below '\/api\/'/],
    ["an unsafe args_into", direct({ args_into: "a.__proto__.b" }), {}, "call.args_into", /__proto__/],
    ["an empty part in args_into", direct({ args_into: "a..b" }), {}, "call.args_into", /empty part/],
    ["an unsafe body", direct({ body: JSON.parse('{"__proto__":{}}') }), {}, "call.body", /__proto__/],
    ["a context value that is no token", direct({ context: { a: "p1" } }), {}, 'call.context["a"]', /\$ctx/],
    [
      "an unsafe binding",
      { contextBindings: { "constructor.x": "$ctx.a" } },
      {},
      'contextBindings["constructor.x"]',
      /constructor/,
    ],
    [
      "an unsafe source",
      { contextBindings: { a: "$ctx.__proto__.x" } },
      {},
      'contextBindings["a"]',
      /__proto__/,
    ],
  ])("%s", (_what, tool, more, path, message) => {
    expect(issuesOf(tool, more)).toEqual([{ path, message: expect.stringMatching(message) }]);
  });

  it("reports at plan time that the deployer forbids the endpoint's address", () => {
    expect(issuesOf({}, {}, { privateHosts: "refuse" })).toEqual([
      { path: "", message: expect.stringMatching(/is loopback/) },
    ]);
    expect(issuesOf({}, {}, { privateHosts: "refuse", allowedRanges: ["127.0.0.0/8"] })).toEqual([]);
  });
});
