import type { AgentEvent } from "@ambit/core/contract";
import { HarnessFailed } from "@ambit/core/plugin";
import { calls, done, says } from "@ambit/fakes/harness";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tooManySecrets } from "../../src/events/redaction.js";
import { Redactor, secretsOf } from "../../src/index.js";
import { parseRunRequest } from "../../src/parse/parse.js";
import { createWorld, eventsOf } from "../fakes/world.js";

const secret = "sk-live-abc/+123";

function stream(redactor: Redactor, pieces: readonly string[], id = "m"): AgentEvent[] {
  return [
    { type: "message_start" as const, id },
    ...pieces.map((delta) => ({ type: "message_delta" as const, id, delta })),
    { type: "message_end" as const, id },
  ].flatMap((event) => redactor.event(event));
}

function textOf(events: readonly AgentEvent[]): string {
  return events.flatMap((event) => (event.type === "message_delta" ? [event.delta] : [])).join("");
}

describe("a secret split between two deltas", () => {
  const text = `before ${secret} after`;
  test.each(Array.from({ length: text.length + 1 }, (_, at) => at))("at %i", (at) => {
    const events = stream(new Redactor([secret]), [text.slice(0, at), text.slice(at)]);
    expect(textOf(events)).toBe("before [redacted] after");
    expect(events.at(-1)).toEqual({ type: "message_end", id: "m" });
  });
});

describe("the output of a command that prints a secret", () => {
  const text = `before ${secret} after`;
  test.each([1, 7, 12, text.length])("in pieces, the second from %i on", (at) => {
    const redactor = new Redactor([secret]);
    const events = [
      { type: "tool_output" as const, id: "c", delta: text.slice(0, at) },
      // A text with the same id is another text.
      { type: "message_start" as const, id: "c" },
      { type: "message_delta" as const, id: "c", delta: "hi" },
      { type: "message_end" as const, id: "c" },
      { type: "tool_output" as const, id: "c", delta: text.slice(at) },
      {
        type: "tool_result" as const,
        id: "c",
        output: text,
        changes: [{ path: `/${secret}`, oldText: secret, newText: `a ${secret}` }],
        locations: [{ path: `/${secret}`, line: 1 }],
      },
    ].flatMap((event) => redactor.event(event));
    const printed = events.flatMap((event) => (event.type === "tool_output" ? [event.delta] : [])).join("");
    expect(printed).toBe("before [redacted] after");
    expect(events.at(-1)).toEqual({
      type: "tool_result",
      id: "c",
      output: "before [redacted] after",
      changes: [{ path: "/[redacted]", oldText: "[redacted]", newText: "a [redacted]" }],
      locations: [{ path: "/[redacted]", line: 1 }],
    });
  });
});

describe("for any secrets, text and splits", () => {
  // Few letters, so that secrets overlap, repeat and begin alike.
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "-"), minLength: 1, maxLength: 9 });
  const secrets = fc.array(letters, { minLength: 1, maxLength: 4 });
  const noise = fc.array(fc.oneof(letters, fc.string({ maxLength: 5 })), { maxLength: 8 });

  test("the stream is the whole text redacted at once", () => {
    fc.assert(
      fc.property(secrets, noise, fc.array(fc.nat(4), { maxLength: 30 }), (hidden, parts, sizes) => {
        const text = [...parts, ...hidden, ...parts].join("");
        const redactor = new Redactor(hidden);
        expect(textOf(stream(redactor, split(text, sizes)))).toBe(redactor.text(text));
      }),
      { numRuns: 2_000 },
    );
  });

  test("no secret is in any event, nor in the events joined, in any of its forms", () => {
    const long = fc.string({ minLength: 8, maxLength: 24 }).filter((value) => !"[redacted]".includes(value));
    fc.assert(
      fc.property(
        fc.array(long, { minLength: 1, maxLength: 3 }),
        noise,
        fc.array(fc.nat(6), { maxLength: 30 }),
        (hidden, parts, sizes) => {
          const forms = hidden.flatMap((value) => [
            value,
            encodeURIComponent(value),
            Buffer.from(value).toString("base64"),
          ]);
          const text = [...parts, ...forms, ...parts].join(" ");
          const events = stream(new Redactor(hidden), split(text, sizes));
          for (const value of hidden) {
            expect(textOf(events)).not.toContain(value);
            expect(events.some((event) => JSON.stringify(event).includes(value))).toBe(false);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test("a text without a secret is unchanged", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), fc.array(fc.nat(6), { maxLength: 30 }), (text, sizes) => {
        const redactor = new Redactor(["\u{10FFFF}never-in-there"]);
        expect(textOf(stream(redactor, split(text, sizes)))).toBe(text);
      }),
    );
  });
});

/** Cut into pieces of these sizes, and the rest. */
function split(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return [...pieces, text.slice(at)];
}

describe("Redactor", () => {
  test("of two secrets with the same beginning the longer one is redacted completely, even across a split", () => {
    expect(textOf(stream(new Redactor(["tok1", "tok1-rest"]), ["tok1", "-rest!"]))).toBe("[redacted]!");
    expect(textOf(stream(new Redactor(["tok1", "tok1-rest"]), ["tok1", "-no"]))).toBe("[redacted]-no");
    expect(textOf(stream(new Redactor(["tok1", "tok1-rest"]), ["tok1"]))).toBe("[redacted]");
  });

  test("a secret that becomes known within a block is redacted, with what was held back", () => {
    const redactor = new Redactor(["old-secret"]);
    const delta = (text: string) => redactor.event({ type: "message_delta", id: "m", delta: text });
    const begun = delta("before old-sec");
    redactor.hide(["old-secret", "old-section-9"]);
    const ended = [
      delta("tion-9 and old-"),
      delta("secret after"),
      redactor.event({ type: "message_end", id: "m" }),
    ];
    expect(textOf([...begun, ...ended.flat()])).toBe("before [redacted] and [redacted] after");
  });

  test("a secret that is forgotten is passed on", () => {
    const redactor = new Redactor(["secret-1", "secret-2"]);
    redactor.hide(["secret-2", "secret-3"], ["secret-1"]);
    expect(redactor.text("secret-1 secret-2 secret-3")).toBe("secret-1 [redacted] [redacted]");
  });

  test("each block is redacted by itself", () => {
    const redactor = new Redactor(["secret"]);
    const events = [
      ...redactor.event({ type: "message_delta", id: "a", delta: "sec" }),
      ...redactor.event({ type: "thought_delta", id: "b", delta: "ret" }),
      ...redactor.event({ type: "message_end", id: "a" }),
    ];
    expect(events).toEqual([
      { type: "thought_delta", id: "b", delta: "ret" },
      { type: "message_delta", id: "a", delta: "sec" },
      { type: "message_end", id: "a" },
    ]);
  });

  test.each([
    ["plain", 'pa"ss\nword', 'pa"ss\nword'],
    ["within JSON", 'pa"ss\nword', JSON.stringify({ key: 'pa"ss\nword' })],
    ["URL-encoded", "a b/c+d", `https://x.example/?k=${encodeURIComponent("a b/c+d")}`],
    ["base64", "s3cr3t??>>", Buffer.from("s3cr3t??>>").toString("base64")],
    ["base64url", "s3cr3t??>>", Buffer.from("s3cr3t??>>").toString("base64url")],
    ["special to patterns", "a.*(b)[c]$", "x a.*(b)[c]$ y"],
  ])("%s", (_what, value, text) => {
    const redacted = new Redactor([value]).text(text);
    expect(redacted).toContain("[redacted]");
    expect(redacted).not.toContain(value);
  });

  const key = "sk-live-0123456789abcdef";
  test.each([
    ["within the base64 of user:key", Buffer.from(`user:${key}`).toString("base64")],
    ["one place later", Buffer.from(`users:${key}`).toString("base64")],
    ["and another", Buffer.from(`myuser:${key}:more`).toString("base64")],
    ["within base64url", Buffer.from(`??>${key}??>`).toString("base64url")],
    ["in hex", `0x${Buffer.from(key).toString("hex")}`],
    ["in hex, upper case", Buffer.from(key).toString("hex").toUpperCase()],
    ["twice in JSON", JSON.stringify(JSON.stringify({ key }))],
  ])("%s", (_what, text) => {
    const redacted = new Redactor([key]).text(text);
    expect(redacted).toContain("[redacted]");
    // At the edges of base64 a character holds bits of its neighbours too.
    expect(text.length - redacted.replace("[redacted]", "").length).toBeGreaterThanOrEqual(key.length);
    expect(Buffer.from(redacted, "base64").toString()).not.toContain("0123456789");
  });

  test.each([
    ["in a URL, lower case", "a b/c+d", "a%20b%2fc%2bd"],
    ["in a form", "a b/c+d", "a+b%2Fc%2Bd"],
    ["escaped twice", 'pa"ss\nword', JSON.stringify(JSON.stringify('pa"ss\nword'))],
  ])("%s", (_what, value, text) => {
    expect(new Redactor([value]).text(text)).not.toContain(text.slice(2, -2));
  });

  test("overlapping secrets are redacted completely", () => {
    expect(new Redactor(["abcd", "cdef"]).text("xabcdefy")).toBe("x[redacted]y");
    expect(textOf(stream(new Redactor(["abcd", "cdef"]), ["xabcd", "efy"]))).toBe("x[redacted]y");
  });

  test("repetitive secrets and texts take no longer than others", () => {
    // A search that starts anew at each character would compare 10^10 of them.
    const redactor = new Redactor([`${"a".repeat(30_000)}b`]);
    expect(redactor.text("a".repeat(1_000_000))).toHaveLength(1_000_000);
    expect(
      textOf(
        stream(
          redactor,
          Array.from({ length: 10_000 }, () => "a".repeat(100)),
        ),
      ),
    ).toHaveLength(1_000_000);
  });

  test("a secret that can't be encoded doesn't cause a failure", () => {
    expect(new Redactor(["\uD800broken"]).text("x \uD800broken y")).toBe("x [redacted] y");
  });

  test("enumerated values of the contract stay readable, even if a secret equals one", () => {
    const redactor = new Redactor(["done", "message", "user_approval", "tool_result", "handshake_rejected"]);
    const expired = { type: "interaction_expired", id: "i", kind: "user_approval" } as const;
    expect(redactor.event(expired)).toEqual([expired]);
    expect(
      redactor.event({
        type: "mcp_server_failed",
        serverName: "done",
        reasonCode: "handshake_rejected",
        message: "no",
      }),
    ).toMatchObject([{ serverName: "[redacted]", reasonCode: "handshake_rejected" }]);
    expect(redactor.event({ type: "done", stopReason: "done" })).toEqual([
      { type: "done", stopReason: "[redacted]" },
    ]);
    expect(redactor.event({ type: "message", text: "a message" })).toEqual([
      { type: "message", text: "a [redacted]" },
    ]);
    expect(
      redactor.event({
        type: "interaction_request",
        id: "i",
        kind: "user_approval",
        payload: { toolName: "done" },
      }),
    ).toEqual([
      { type: "interaction_request", id: "i", kind: "user_approval", payload: { toolName: "[redacted]" } },
    ]);
  });

  test("nothing is copied where nothing is hidden", () => {
    const event: AgentEvent = { type: "message", text: "x" };
    expect(new Redactor([]).event(event)[0]).toBe(event);
  });
});

describe("a request with far too many characters of credentials", () => {
  const tool = { name: "t", kind: "code", runtime: "node", code: "x" };
  const lines = (count: number) => "password=abcdefghijkl\n".repeat(count);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`K${at}`, lines(1_000)]));
  const authorization = `Bearer ${"abcdefghijkl,".repeat(10_000)}`;
  const requests: [string, object][] = [
    ["in one variable", { customTools: [{ ...tool, env: { KEY: lines(100_000) } }] }],
    ["in many variables", { customTools: [{ ...tool, env: many }] }],
    ["in a header", { toolCallback: { endpoint: "https://a.example/", authorization } }],
  ];

  test.each(requests)("%s isn't searched for their parts", (_where, body) => {
    const parsed = parseRunRequest({ messages: [{ role: "user", content: "hi" }], ...body });
    if (!("request" in parsed)) throw new Error("refused");
    const secrets = secretsOf(parsed.request);
    expect(secrets.filter((secret) => secret.startsWith("abcdefghijkl"))).toEqual([]);
    expect(tooManySecrets(secrets)).toMatchObject([
      { message: expect.stringContaining("more than 32,768 characters") },
    ]);
  });
});

describe("secretsOf", () => {
  test("finds every credential that a request can contain, and no ordinary word", () => {
    const parsed = parseRunRequest({
      modelConnection: {
        endpoint: { baseUrl: "https://m.example", headers: { "x-key": "endpoint-header" } },
        credentials: [{ binding: { kind: "environment", name: "K" }, value: "model-credential" }],
      },
      toolCallback: { endpoint: "https://p.example/", authorization: "Access callback-token" },
      customTools: [{ name: "a", kind: "code", env: { K: "tool-value", SHORT: "abc", FLAG: "true" } }],
      mcpServers: [
        { name: "s", connection: { type: "stdio", command: "x", env: { K: "stdio-value" } } },
        {
          name: "h",
          connection: {
            type: "http",
            url: "https://h.example",
            headers: { Authorization: "Bearer mcp-token", Accept: "application/json" },
            credentials: [{ binding: { kind: "header", name: "x" }, value: "mcp-credential" }],
          },
        },
      ],
      telemetry: {
        exporters: {
          otlp: { endpoint: "https://o.example/?api_key=otlp-query", headers: { "x-otlp": "otlp-header" } },
        },
      },
      webhook: { url: "https://hooks.example/services/T000/B000/abcdefgh" },
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    expect(new Set(secretsOf(parsed.request))).toEqual(
      new Set([
        "endpoint-header",
        "model-credential",
        "Access callback-token",
        "callback-token",
        "tool-value",
        "stdio-value",
        "Bearer mcp-token",
        "mcp-token",
        "mcp-credential",
        "otlp-query",
        "otlp-header",
        "https://hooks.example/services/T000/B000/abcdefgh",
        "/services/T000/B000/abcdefgh",
      ]),
    );
  });
});

describe("the secret parts of a credential", () => {
  test.each<[what: string, value: string, parts: readonly string[]]>([
    [
      "a DSN",
      "postgres://app:p%40ss-word@db.example:5432/app",
      ["p%40ss-word", "p@ss-word", "app:p%40ss-word"],
    ],
    ["a DSN with an @ in its password", "amqp://u:a@b-word@host/", ["a@b-word"]],
    ["a token for a user", "https://ghp_0123456789@github.com/x.git", ["ghp_0123456789"]],
    ["a query", "https://h.example/mcp?api_key=k-123456&page=2", ["k-123456"]],
    ["a connection string", "Server=db;User Id=app;Password=s3cr3t-word;", ["s3cr3t-word"]],
    ["libpq's", "host=db user=app password='s3cr3t word' port=1", ["s3cr3t word"]],
    ["Go's", "app:s3cr3t-word@tcp(db:3306)/app", ["s3cr3t-word"]],
    [
      "a service account",
      JSON.stringify({ type: "service_account", private_key: "-----BEGIN\nMIIEvQIBADANBgkqhk\n-----END" }),
      ["-----BEGIN\nMIIEvQIBADANBgkqhk\n-----END", "MIIEvQIBADANBgkqhk"],
    ],
    ["a key of several lines", "-----BEGIN\nMIIEvQIBADANBgkqhk\n-----END", ["MIIEvQIBADANBgkqhk"]],
  ])("%s", (_what, value, parts) => {
    const parsed = parseRunRequest({ customTools: [{ name: "a", kind: "code", env: { VALUE: value } }] });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    const secrets = secretsOf(parsed.request);
    expect(secrets).toEqual(expect.arrayContaining([value, ...parts]));
    expect(secrets).not.toContain("2");
    expect(secrets).not.toContain("service_account");
  });

  test("in headers and URLs of servers", () => {
    const parsed = parseRunRequest({
      mcpServers: [
        {
          name: "h",
          connection: {
            type: "http",
            url: "https://h.example/mcp?token=t-123456",
            headers: { Authorization: `Basic ${Buffer.from("me:pass-word").toString("base64")}` },
          },
        },
      ],
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    expect(secretsOf(parsed.request)).toEqual(
      expect.arrayContaining(["t-123456", "me:pass-word", "pass-word"]),
    );
  });

  test("too many secrets are refused before the run", async () => {
    const world = await createWorld({ script: says("never") });
    const env = { A: "a".repeat(40_000), B: "b".repeat(40_000) };
    await expect(world.run({ customTools: [{ name: "a", kind: "client", env }] })).rejects.toThrow(
      "more than 32,768 characters of credentials",
    );
  });

  test("too many short secrets are refused before the run", async () => {
    const world = await createWorld({ script: says("never") });
    const values = (count: number, name: string, begin: string) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, at) => [`K${at}${name}`, `${begin}${1_000 + at}`]),
      );
    // A value that is JSON is one, and so is each secret in it.
    const having = (count: number) => {
      const json = JSON.stringify(values(count - 1_501, "_token", "%"));
      return { customTools: [{ name: "a", kind: "client", env: { ...values(1_500, "", "&"), JSON: json } }] };
    };
    await expect(world.run(having(2_001))).rejects.toThrow("more than 2,000 credentials");
    await world.run(having(2_000));
  });

  test("secrets that have too many spellings are refused before the run", async () => {
    const world = await createWorld({ script: says("never") });
    const env = { A: `"'/&<+=`.repeat(4_000) };
    await expect(world.run({ customTools: [{ name: "a", kind: "client", env }] })).rejects.toThrow(
      "more than 655,360 characters in all the encodings",
    );
    // The control: as many characters with one spelling each.
    await world.run({ customTools: [{ name: "a", kind: "client", env: { A: "abcdefg".repeat(4_000) } }] });
  });
});

describe("in a session", () => {
  const sending = (value: string) => ({
    sessionId: "s",
    modelConnection: { credentials: [{ binding: { kind: "environment", name: "K" }, value }] },
  });

  test("an earlier run's credentials stay hidden, in its events and in the log, for its lifetime", async () => {
    const hidden = new Set<readonly string[]>();
    const world = await createWorld({
      script: [says("first"), says("yesterday's key was key-of-monday")],
      hideSecrets: (secrets) => {
        hidden.add(secrets);
        return () => void hidden.delete(secrets);
      },
    });
    await world.run(sending("key-of-monday"));
    const recorded = await world.run(sending("key-of-tuesday"));
    expect(recorded.result.output).toBe("yesterday's key was [redacted]");
    // The control: it was the same session.
    expect(world.sandbox.opened).toBe(1);
    expect([...hidden].flat()).toEqual(["key-of-monday", "key-of-tuesday"]);
    await world.runner.endSession("s");
    expect(hidden.size).toBe(0);
  });

  test("another session doesn't redact them", async () => {
    const world = await createWorld({ script: says("key-of-monday") });
    await world.run(sending("key-of-monday"));
    expect((await world.run({ sessionId: "other" })).result.output).toBe("key-of-monday");
  });

  test("with too many to remember is replaced", async () => {
    const world = await createWorld({ script: says("x") });
    await world.run(sending("a".repeat(20_000)));
    await world.run(sending("b".repeat(20_000)));
    expect(world.sandbox.opened).toBe(2);
  });
});

describe("in a run", () => {
  const modelConnection = { credentials: [{ binding: { kind: "environment", name: "K" }, value: secret }] };

  test("events, output, messages and tool results hold no secret", async () => {
    const world = await createWorld({
      script: async function* (turn) {
        yield { type: "message_start", id: "m" };
        for (const delta of ["my key is sk-live", "-abc/", "+123", "."])
          yield { type: "message_delta", id: "m", delta };
        yield { type: "message_end", id: "m" };
        yield* calls("look_up", { key: secret })(turn);
      },
    });
    const customTools = [{ name: "look_up", permission: "allow", callRef: "r" }];
    const recorded = await world.run({ modelConnection, customTools }, true);
    expect(JSON.stringify(recorded.records)).not.toContain(secret);
    expect(recorded.result.output).toBe("my key is [redacted].");
    // The control: it did reach the tool.
    expect(world.callback.calls[0]?.arguments).toEqual({ key: secret });
    expect(eventsOf(recorded, "tool_result")).toMatchObject([{ output: '{"key":"[redacted]"}' }]);
  });

  test("errors contain no secret, nor do open calls of a failed turn", async () => {
    const world = await createWorld({
      script: async function* () {
        yield { type: "message_start", id: "m" };
        yield { type: "message_delta", id: "m", delta: `begun ${secret.slice(0, 5)}` };
        throw new HarnessFailed(`refused key ${secret}`);
      },
    });
    const recorded = await world.run({ modelConnection });
    expect(JSON.stringify(recorded.records)).not.toContain(secret);
    expect(recorded.result.error).toBe("refused key [redacted]");
    // What was held back turned out to be no secret.
    expect(recorded.result.output).toBe(`begun ${secret.slice(0, 5)}`);
    expect(eventsOf(recorded, "message_end")).toHaveLength(1);
  });

  test("a secret that equals a word of the wire doesn't break the record", async () => {
    const world = await createWorld({
      script: async function* () {
        yield { type: "message", text: "x" };
        yield done;
      },
    });
    const { result } = await world.run({
      customTools: [{ name: "a", kind: "client", env: { A: "done", B: "message" } }],
    });
    expect(result.failure?.code).toBe("harness_failed");
  });
});

test("credentials that stay outside are secrets, and so is a password within one", () => {
  const hosts = ["git.example.com"];
  const parsed = parseRunRequest({
    credentials: [
      { name: "A", value: "robot:a-password", hosts, as: "basic" },
      { name: "B", value: "a-token-of-the-test", hosts, as: { header: "x-api-key" } },
    ],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  expect(secretsOf(parsed.request)).toEqual(
    expect.arrayContaining(["robot:a-password", "a-password", "a-token-of-the-test"]),
  );
});
