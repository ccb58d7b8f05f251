import { type Issue, limits, runRequestSchema } from "@ambit/core/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRunRequest } from "../../src/parse/parse.js";
import { golden } from "./golden-files.js";

function issuesOf(body: unknown): Issue[] {
  const parsed = parseRunRequest(body);
  return parsed.ok ? [] : parsed.issues;
}

const defaults = {
  messages: [],
  customTools: [],
  mcpServers: [],
  skills: [],
  credentials: [],
  harnessFiles: [],
  permissions: { default: "allow_reads" },
  sandboxPermission: { enforcement: "strict" },
};

const callback = { url: "https://platform.test/mint" };
/** Callbacks that are refused, by field. */
const refreshes: readonly [field: string, message: string, refresh: object][] = [
  ["url", "is required: a string", {}],
  ["url", "must be an absolute http:// or https:// URL", { url: "ftp://platform.test/" }],
  [
    "url",
    "must not contain a user name or password: send them in a header",
    { url: "https://user:password@platform.test/" },
  ],
  [
    "authorization",
    "must be printable ASCII: a header carries it",
    { ...callback, authorization: "Bearer key\r\nx: y" },
  ],
  ...["2026-01-31", "1769860800", "2026-01-31T12:00:00", "soon"].map(
    (expiresAt): [string, string, object] => [
      "expiresAt",
      "must be a time such as 2026-01-31T12:00:00Z, or with an offset",
      { ...callback, expiresAt },
    ],
  ),
];

describe("what parses", () => {
  test.each<[what: string, body: unknown, request: object]>([
    ["nothing", undefined, {}],
    ["null", null, {}],
    ["an empty object", {}, {}],
    ["a blank session, as absent", { sessionId: " \t" }, {}],
    ["a session, untrimmed", { sessionId: " a " }, { sessionId: " a " }],
    ["a null of an unknown name, as absent", { unknown: null }, {}],
    [
      "nulls, as absent",
      { sessionId: null, messages: null, toolCallback: null, sandboxPermission: null },
      {},
    ],
    [
      "nulls below",
      { sandboxPermission: { network: { mode: null } } },
      { sandboxPermission: { network: {}, enforcement: "strict" } },
    ],
    [
      "a tool without a kind, as a callback",
      { customTools: [{ name: "a" }] },
      { customTools: [{ name: "a", kind: "callback", inputSchema: { type: "object", properties: {} } }] },
    ],
  ])("%s", (_what, body, request) => {
    expect(parseRunRequest(body)).toEqual({ ok: true, request: { ...defaults, ...request } });
  });

  test.each<[path: string, body: Record<string, unknown>]>([
    [
      "a tool's JSON Schema",
      {
        customTools: [
          {
            name: "a",
            kind: "k",
            inputSchema: { default: null, read_only: null, properties: { input_schema: { default: null } } },
          },
        ],
      },
    ],
    [
      "a tool's options",
      { customTools: [{ name: "a", kind: "k", inputSchema: {}, options: { call_ref: null } }] },
    ],
    [
      "a render hint",
      {
        customTools: [{ name: "a", kind: "k", inputSchema: {}, render: { kind: "spec", schema_ref: null } }],
      },
    ],
    [
      "a direct call's body",
      {
        customTools: [
          {
            name: "a",
            kind: "k",
            inputSchema: {},
            call: { method: "PUT", path: "/", body: { time_out: null } },
          },
        ],
      },
    ],
    ["the run's context", { runContext: { trace: { trace_id: null } } }],
    [
      "a call's arguments and result",
      {
        messages: [
          { role: "user", content: [{ type: "tool_result", input: { tool_name: null }, output: [null] }] },
        ],
      },
    ],
  ])("%s is left as it came", (_what, body) => {
    expect(parseRunRequest(body)).toEqual({ ok: true, request: { ...defaults, ...body } });
  });

  test("a tool's JSON Schema isn't even copied", () => {
    const inputSchema = { type: "object" };
    const parsed = parseRunRequest({
      sessionId: null,
      customTools: [{ name: "a", call: null, inputSchema }],
    });
    expect(parsed.ok && parsed.request.customTools[0]?.inputSchema).toBe(inputSchema);
  });
});

const stdio = { type: "stdio", command: "x" };
const http = { type: "http", url: "https://mcp.example" };
const credential = (name: string, value: string) => ({
  modelConnection: { credentials: [{ binding: { kind: "environment", name }, value }] },
});

describe("refused requests and their messages", () => {
  test.each<[path: string, message: string | RegExp, body: unknown]>([
    ["", "must be an object, not a list", []],
    ["", "must be an object, not a string", "{}"],
    ["sandboxPermision", "is not a known field: did you mean `sandboxPermission`?", { sandboxPermision: {} }],
    [
      "sandbox_permision",
      "is not a known field: did you mean `sandboxPermission`?",
      { sandbox_permision: {} },
    ],
    ["colour", "is not a known field: remove it", { colour: "red" }],
    ["__proto__", /not a known field/, JSON.parse('{"__proto__":{"harness":"x"}}')],
    ["__proto__", /not a known field/, JSON.parse('{"sessionId":null,"__proto__":{"harness":"x"}}')],
    ['["a key"]', /not a known field/, { "a key": 1 }],
    [
      "customTools[0].callref",
      "is not a known field: did you mean `callRef`?",
      { customTools: [{ name: "a", callref: "x" }] },
    ],
    [
      "sandboxPermission.network.allow_lst",
      "is not a known field: did you mean `allowlist`?",
      { sandboxPermission: { network: { allow_lst: [] } } },
    ],
    [
      "mcpServers[0].connection.comand",
      "is not a known field: did you mean `command`?",
      { mcpServers: [{ name: "a", connection: { ...stdio, comand: "y" } }] },
    ],
    ["harness", "must be a string, not a number", { harness: 5 }],
    ["harness", "must not be empty", { harness: "" }],
    ["messages", "must be a list, not a string", { messages: "hi" }],
    [
      "messages[0].role",
      /^must be one of "user", .*; did you mean "user"\?$/,
      { messages: [{ role: "usr", content: "" }] },
    ],
    [
      "messages[0].content",
      "must be a string, or a list, not a number",
      { messages: [{ role: "user", content: 5 }] },
    ],
    [
      "messages[0].content[0].type",
      "is required: a string",
      { messages: [{ role: "user", content: [{ text: "x" }] }] },
    ],
    ["messages[0]", "must be an object, not null", { messages: [null] }],
    ["customTools[1].name", "is required: a string", { customTools: [{ name: "a" }, { kind: "code" }] }],
    ["customTools[0].name", "must be 1 to 128 of A-Z a-z 0-9 _ . -", { customTools: [{ name: "a b" }] }],
    ["customTools[0].inputSchema", "must be an object", { customTools: [{ name: "a", inputSchema: [] }] }],
    ["customTools[0].timeoutMs", "must be a whole number", { customTools: [{ name: "a", timeoutMs: 1.5 }] }],
    [
      "credentials[0].value",
      "must have 8 characters or more: send a longer one",
      { credentials: [{ name: "KEY", value: "secret", hosts: ["a.test"], as: "bearer" }] },
    ],
    [
      "credentials[0].hosts",
      "must not be empty",
      { credentials: [{ name: "KEY", value: "long-enough", hosts: [], as: "bearer" }] },
    ],
    [
      "environment.credentials[0].refresh",
      "is not a known field: remove it",
      {
        environment: {
          setup: ["true"],
          credentials: [
            { name: "KEY", value: "long-enough", hosts: ["a.test"], as: "bearer", refresh: callback },
          ],
        },
      },
    ],
    ...refreshes.map(([field, message, refresh]): [string, string, object] => [
      `credentials[0].refresh.${field}`,
      message,
      { credentials: [{ name: "KEY", value: "long-enough", hosts: ["a.test"], as: "bearer", refresh }] },
    ]),
    ...["localhost", "LOCALHOST:8443", "api.localhost", "localhost.localdomain"].map(
      (host): [string, RegExp, object] => [
        "credentials[0].hosts[0]",
        /^must not be localhost/,
        { credentials: [{ name: "KEY", value: "long-enough", hosts: [host], as: "bearer" }] },
      ],
    ),
    ["customTools[0].timeoutMs", "must be more than 0", { customTools: [{ name: "a", timeoutMs: 0 }] }],
    [
      "customTools[0].timeoutMs",
      "must be 86,400,000 at most",
      { customTools: [{ name: "a", timeoutMs: 86_400_001 }] },
    ],
    [
      'customTools[0].env["1A"]',
      /^the name must be a variable's name/,
      { customTools: [{ name: "a", env: { "1A": "" } }] },
    ],
    ["customTools[0].env.A", /NUL/, { customTools: [{ name: "a", env: { A: "\0" } }] }],
    [
      "customTools[0].env.A",
      "must be a string, not null",
      { customTools: [{ name: "a", env: { A: null } }] },
    ],
    [
      "customTools[1].name",
      "is the same as customTools[0].name: every name must be unique",
      { customTools: [{ name: "a" }, { name: "a" }] },
    ],
    [
      "mcpServers[1].name",
      /customTools|mcpServers\[0\]\.name/,
      {
        mcpServers: [
          { name: "a", connection: stdio },
          { name: "a", connection: http },
        ],
      },
    ],
    [
      "mcpServers[0].name",
      "'ambit' is the name of the runner's own server: rename this one",
      { mcpServers: [{ name: "ambit", connection: stdio }] },
    ],
    [
      "mcpServers[0].connection.type",
      'must be one of "http", "stdio"; did you mean "stdio"?',
      { mcpServers: [{ name: "a", connection: { type: "stdin" } }] },
    ],
    [
      "mcpServers[0].connection.url",
      /http:\/\/ or https:\/\//,
      { mcpServers: [{ name: "a", connection: { type: "http", url: "file:///etc/passwd" } }] },
    ],
    [
      "mcpServers[0].connection.url",
      /control characters/,
      { mcpServers: [{ name: "a", connection: { type: "http", url: "https://mcp.exam\nple" } }] },
    ],
    [
      "mcpServers[0].connection.headers.A",
      /line break/,
      { mcpServers: [{ name: "a", connection: { ...http, headers: { A: "b\r\nC: d" } } }] },
    ],
    [
      'mcpServers[0].connection.headers["A:"]',
      /header name/,
      { mcpServers: [{ name: "a", connection: { ...http, headers: { "A:": "" } } }] },
    ],
    [
      'mcpServers[0].connection.env["A=B"]',
      /without = or NUL/,
      { mcpServers: [{ name: "a", connection: { ...stdio, env: { "A=B": "" } } }] },
    ],
    [
      "mcpServers[0].connection.args[0]",
      /NUL/,
      { mcpServers: [{ name: "a", connection: { ...stdio, args: ["\0"] } }] },
    ],
    [
      "mcpServers[0].policy.tools.names",
      /must be empty when the mode is "all"/,
      { mcpServers: [{ name: "a", connection: stdio, policy: { tools: { names: ["x"] } } }] },
    ],
    [
      "mcpServers[0].policy.tools.names",
      /is required with the mode "include"/,
      { mcpServers: [{ name: "a", connection: stdio, policy: { tools: { mode: "include" } } }] },
    ],
    ["modelConnection.credentials[0].binding.name", /without = or NUL/, credential("A=B", "")],
    ["modelConnection.credentials[0].value", /NUL/, credential("A", "\0")],
    [
      "modelConnection.endpoint.baseUrl",
      /http:\/\/ or https:\/\//,
      { modelConnection: { endpoint: { baseUrl: "api.example" } } },
    ],
    ["toolCallback.endpoint", /http:\/\/ or https:\/\//, { toolCallback: { endpoint: "ftp://x" } }],
    [
      "toolCallback.authorization",
      /line break/,
      { toolCallback: { endpoint: "https://x", authorization: "a\nb" } },
    ],
    [
      "sandboxPermission.network",
      'must be one of "on", "off", "restricted", or an object; did you mean "restricted"?',
      { sandboxPermission: { network: "restrictd" } },
    ],
    [
      "sandboxPermission.network",
      /^must be one of "on", "off", "restricted", or an object$/,
      { sandboxPermission: { network: "allowlist" } },
    ],
    [
      "sandboxPermission.network",
      /^must be one of "on", "off", "restricted", or an object, not true or false$/,
      { sandboxPermission: { network: false } },
    ],
    [
      "sandboxPermission.network.mode",
      'must be one of "on", "off", "allowlist"',
      { sandboxPermission: { network: { mode: "restricted" } } },
    ],
    [
      "sandboxPermission.network.allowlist",
      /must be empty when the mode is "off"/,
      { sandboxPermission: { network: { mode: "off", allowlist: ["a.example"] } } },
    ],
    [
      "sandboxPermission.network.allowlist",
      /must be empty when the mode is "on"/,
      { sandboxPermission: { network: { mode: "on", allowlist: ["a.example"] } } },
    ],
    [
      "sandboxPermission.network.allowlist",
      "has 1,001 entries, 1,000 at most: send fewer",
      { sandboxPermission: { network: { allowlist: Array(1_001).fill("a.example") } } },
    ],
    [
      "sandboxPermission.enforcement",
      /did you mean "best_effort"/,
      { sandboxPermission: { enforcement: "best-effort" } },
    ],
    [
      "harnessFiles[0].path",
      /must not contain '\.\.'/,
      { harnessFiles: [{ path: "a/../../b", content: "" }] },
    ],
    ["harnessFiles[0].path", /not absolute/, { harnessFiles: [{ path: "/a", content: "" }] }],
    ["harnessFiles[0].path", /NUL/, { harnessFiles: [{ path: "a\0", content: "" }] }],
    ["harnessFiles[0].path", /backslash/, { harnessFiles: [{ path: "a\\b", content: "" }] }],
    ["harnessFiles[0].path", /must name something/, { harnessFiles: [{ path: "./", content: "" }] }],
    [
      "harnessFiles[1].path",
      /same as harnessFiles\[0\]\.path/,
      {
        harnessFiles: [
          { path: "a/b", content: "" },
          { path: "./a//b", content: "" },
        ],
      },
    ],
    [
      "harnessFiles[0].path",
      "must name a file, not a folder",
      { harnessFiles: [{ path: "a/", content: "" }] },
    ],
    [
      "harnessFiles[0].path",
      "must name a file, not a folder",
      { harnessFiles: [{ path: "a/.", content: "" }] },
    ],
    [
      "harnessFiles[0].path",
      /^is inside harnessFiles\[1\]\.path/,
      {
        harnessFiles: [
          { path: "a/b/c", content: "" },
          { path: "a", content: "" },
        ],
      },
    ],
    [
      "skills[0].files[0].path",
      /generated from the skill's name/,
      { skills: [{ name: "a", body: "", files: [{ path: "./SKILL.md", content: "" }] }] },
    ],
    [
      "toolCallback.endpoint",
      /user name or password/,
      { toolCallback: { endpoint: "https://ada:secret@tools.example/call" } },
    ],
    [
      "skills[1].name",
      /same as skills\[0\]\.name/,
      {
        skills: [
          { name: "a", body: "" },
          { name: "a", body: "" },
        ],
      },
    ],
    [
      "skills[0].files[1].path",
      /same as skills\[0\]\.files\[0\]\.path/,
      {
        skills: [
          {
            name: "a",
            body: "",
            files: [
              { path: "x", content: "" },
              { path: "x", content: "" },
            ],
          },
        ],
      },
    ],
    [
      "skills[0].files[0].path",
      /must not contain '\.\.'/,
      { skills: [{ name: "a", body: "", files: [{ path: "../x", content: "" }] }] },
    ],
    [
      "messages[0].content[0].attachmentId",
      /platform's own store/,
      { messages: [{ role: "user", content: [{ type: "attachment", attachmentId: "a" }] }] },
    ],
  ])("%s %s", (path, message, body) => {
    expect(issuesOf(body)).toEqual([
      { path, message: typeof message === "string" ? message : expect.stringMatching(message) },
    ]);
  });

  test.each<[field: string, max: number, body: (count: number) => unknown]>([
    [
      "customTools",
      limits.tools,
      (count) => ({ customTools: Array.from({ length: count }, (_, index) => ({ name: `t${index}` })) }),
    ],
    [
      "mcpServers",
      limits.mcpServers,
      (count) => ({
        mcpServers: Array.from({ length: count }, (_, index) => ({ name: `s${index}`, connection: stdio })),
      }),
    ],
    [
      "messages",
      limits.messages,
      (count) => ({ messages: Array(count).fill({ role: "user", content: "" }) }),
    ],
    [
      "harnessFiles",
      limits.harnessFiles,
      (count) => ({
        harnessFiles: Array.from({ length: count }, (_, index) => ({ path: `f${index}`, content: "" })),
      }),
    ],
    [
      "skills",
      limits.skills,
      (count) => ({ skills: Array.from({ length: count }, (_, index) => ({ name: `s${index}`, body: "" })) }),
    ],
    [
      "permissions.rules",
      limits.permissionRules,
      (count) => ({ permissions: { rules: Array(count).fill({ pattern: "a", permission: "ask" }) } }),
    ],
  ])("%s up to its limit, and no more", (field, max, body) => {
    expect(issuesOf(body(max))).toEqual([]);
    expect(issuesOf(body(max + 1))).toEqual([{ path: field, message: expect.stringContaining("at most") }]);
  });

  const many = limits.entries + 1;
  const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`K${i}`, ""]));
  test.each<[path: string, what: string, body: unknown]>([
    ["", "keys", keys(many)],
    ["messages[0].content", "entries", { messages: [{ role: "user", content: Array(many).fill({}) }] }],
    ["customTools[0].env", "keys", { customTools: [{ name: "a", env: keys(many) }] }],
    [
      "mcpServers[0].connection.args",
      "entries",
      { mcpServers: [{ name: "a", connection: { ...stdio, args: Array(many).fill(1) } }] },
    ],
  ])("%s has too many %s to be looked at one by one", (path, what, body) => {
    expect(issuesOf(body)).toEqual([{ path, message: `has 10,001 ${what}, 10,000 at most: send fewer` }]);
  });

  test("a caller's own values may be as large as the body", () => {
    expect(issuesOf({ runContext: keys(many) })).toEqual([]);
  });

  test("all issues at once, of any kind", () => {
    const paths = issuesOf({
      foo: 1,
      session_id: "a",
      sessionId: "b",
      customTools: [{ name: "a" }, { name: "a", callRef: 5 }],
      sandboxPermission: { network: { mode: "off", allowlist: ["a.example"] }, filesystem: 7 },
    }).map(({ path }) => path);
    expect(paths.sort()).toEqual([
      "customTools[1].callRef",
      "customTools[1].name",
      "foo",
      "sandboxPermission.filesystem",
      "sandboxPermission.network.allowlist",
      "session_id",
    ]);
  });

  test("the first hundred issues, and a note on further ones", () => {
    const issues = issuesOf({ customTools: Array.from({ length: 150 }, () => ({})) });
    expect(issues).toHaveLength(101);
    expect(issues[100]).toEqual({ path: "", message: "there are more: fix these first" });
  });

  test("no value of the request is repeated in an issue", () => {
    const secret = "s3cr3t-value";
    const bodies = [
      { harness: [secret] },
      { permissions: secret },
      { permissions: { default: secret } },
      { toolCallback: { endpoint: secret, authorization: `${secret}\n` } },
      { secrets: secret },
      { toolCallback: { endpoint: `https://ada:${secret}@tools.example` } },
      credential("A=B", secret),
      credential("A", `${secret}\0`),
    ];
    for (const body of bodies) {
      const issues = issuesOf(body);
      expect(issues).not.toEqual([]);
      expect(JSON.stringify(issues)).not.toContain(secret);
    }
  });
});

test("names with a common prefix don't collide", () => {
  const files = ["a-b", "a.b", "a b", "ab", "b/a", "a/b", "a/b.c"].map((path) => ({ path, content: "" }));
  expect(issuesOf({ harnessFiles: files })).toEqual([]);
  expect(issuesOf({ harnessFiles: [...files, { path: "a", content: "" }] })).toEqual([
    { path: "harnessFiles[6].path", message: expect.stringContaining("harnessFiles[7].path") },
    { path: "harnessFiles[5].path", message: expect.stringContaining("harnessFiles[7].path") },
  ]);
});

test("an attachment of an earlier message isn't sent again", () => {
  const earlier = { role: "user", content: [{ type: "attachment", attachmentId: "a" }] };
  expect(issuesOf({ messages: [earlier, { role: "user", content: "hi" }] })).toEqual([]);
});

test("entry by entry, a request parses to what its schema says", () => {
  const body = golden("request-full");
  expect(parseRunRequest(body)).toEqual({ ok: true, request: runRequestSchema.parse(body) });
});

test("any value anywhere in a request is parsed, or refused with an issue", () => {
  const full = golden("request-full") as Record<string, unknown>;
  const anything = fc.jsonValue({ maxDepth: 4 });
  const changed = fc
    .tuple(fc.constantFrom(...Object.keys(full), "unknown", "prompt", "secrets", "trace"), anything)
    .map(([key, value]) => ({ ...full, [key]: value }));
  fc.assert(
    fc.property(fc.oneof(anything, changed), (body) => {
      const before = structuredClone(body);
      const parsed = parseRunRequest(body);
      expect(body).toEqual(before);
      if (parsed.ok) expect(runRequestSchema.safeParse(parsed.request).success).toBe(true);
      else expect(parsed.issues.every(({ message }) => message !== "")).toBe(true);
    }),
    { numRuns: 500 },
  );
});
