import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AgentEvent, parseRunRequest } from "../../src/contract/index.js";
import { HarnessFailed } from "../../src/plugin/index.js";
import { Redactor, secretsOf } from "../../src/run/index.js";
import { calls, done } from "./fakes/harness.js";
import { createWorld, eventsOf } from "./fakes/world.js";

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

describe("whatever the secrets, the text and the splits", () => {
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
  test("the longer of two secrets that begin alike is taken whole, also across a split", () => {
    expect(textOf(stream(new Redactor(["tok1", "tok1-rest"]), ["tok1", "-rest!"]))).toBe("[redacted]!");
    expect(textOf(stream(new Redactor(["tok1", "tok1-rest"]), ["tok1", "-no"]))).toBe("[redacted]-no");
    expect(textOf(stream(new Redactor(["tok1", "tok1-rest"]), ["tok1"]))).toBe("[redacted]");
  });

  test("blocks are told apart", () => {
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

  test("a secret that can't be encoded is no reason to fail", () => {
    expect(new Redactor(["\uD800broken"]).text("x \uD800broken y")).toBe("x [redacted] y");
  });

  test("what the contract enumerates stays readable, even if a secret reads the same", () => {
    const redactor = new Redactor(["done", "message", "user_approval", "tool_result"]);
    expect(redactor.event({ type: "done", stopReason: "done" })).toEqual([
      { type: "done", stopReason: "[redacted]" },
    ]);
    expect(redactor.event({ type: "message", text: "a message" })).toEqual([
      { type: "message", text: "a [redacted]" },
    ]);
    expect(
      redactor.event({ type: "interaction_request", id: "i", kind: "user_approval", payload: "done" }),
    ).toEqual([{ type: "interaction_request", id: "i", kind: "user_approval", payload: "[redacted]" }]);
  });

  test("nothing is copied where nothing is hidden", () => {
    const event: AgentEvent = { type: "message", text: "x" };
    expect(new Redactor([]).event(event)[0]).toBe(event);
  });
});

describe("secretsOf", () => {
  test("finds every credential a request can carry, and no ordinary word", () => {
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
      telemetry: { exporters: { otlp: { headers: { "x-otlp": "otlp-header" } } } },
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
        "otlp-header",
      ]),
    );
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
    const told = await world.run({ modelConnection, customTools }, true);
    expect(JSON.stringify(told.records)).not.toContain(secret);
    expect(told.result.output).toBe("my key is [redacted].");
    // The control: it did reach the tool.
    expect(world.callback.calls[0]?.arguments).toEqual({ key: secret });
    expect(eventsOf(told, "tool_result")).toMatchObject([{ output: '{"key":"[redacted]"}' }]);
  });

  test("errors hold no secret, nor does what was left open when the turn broke", async () => {
    const world = await createWorld({
      script: async function* () {
        yield { type: "message_start", id: "m" };
        yield { type: "message_delta", id: "m", delta: `begun ${secret.slice(0, 5)}` };
        throw new HarnessFailed(`refused key ${secret}`);
      },
    });
    const told = await world.run({ modelConnection });
    expect(JSON.stringify(told.records)).not.toContain(secret);
    expect(told.result.error).toBe("refused key [redacted]");
    // What was held back turned out to be no secret.
    expect(told.result.output).toBe(`begun ${secret.slice(0, 5)}`);
    expect(eventsOf(told, "message_end")).toHaveLength(1);
  });

  test("a secret that reads like a word of the wire doesn't break the record", async () => {
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
