import type { Door, DoorCall } from "@ambit/core/plugin";
import { RequestInvalid } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { doorChecks } from "../src/door/checks.js";
import type { DoorClient } from "../src/door/door-client.js";
import { DoorStage, ScriptedApi } from "../src/index.js";

interface Body {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly ambit?: object;
}

/** What a door does with a request. Each part is replaced by a mistake. */
interface Parts {
  readonly read: (body: unknown) => Body;
  /** Of the run. */
  readonly request: (body: Body, call: DoorCall) => object;
  readonly begin: (request: object, call: DoorCall) => Promise<Response>;
  /** What its client reads of the log. */
  readonly body: (log: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>;
}

const careful: Parts = {
  read: (body) => {
    const { messages, ambit } = Object(body);
    if (!Array.isArray(messages)) throw new RequestInvalid([{ path: "messages", message: "is missing" }]);
    return { messages, ambit };
  },
  request: ({ messages, ambit }, { caller }) => {
    if (caller === "page") return { messages: messages.slice(-1) };
    return { harness: "demo", ...ambit, messages: messages.slice(-1) };
  },
  begin: (request, { fetch, request: { signal } }) =>
    fetch("http://ambit/stream", { method: "POST", body: JSON.stringify(request), signal }),
  body: (log) => log.pipeThrough(linesOf((line) => !line.includes("kit_unknown"))),
};

/** The lines of a log that fulfil a condition. A record of the kit is one chunk. */
function linesOf(isShown: (line: string) => boolean) {
  const decoder = new TextDecoder();
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (bytes, controller) => {
      if (isShown(decoder.decode(bytes))) controller.enqueue(bytes);
    },
  });
}

function doorOf({ read, request, begin, body }: Parts): Door {
  const handle = async (call: DoorCall) => {
    const log = await begin(request(read(await call.json()), call), call);
    if (!log.ok || log.body === null) return log;
    return new Response(body(log.body));
  };
  return { name: "plain", routes: [{ method: "POST", path: "/plain/{chat}", summary: "Chats", handle }] };
}

const sending = (messages: readonly object[], more: object = {}) => ({
  path: "/plain/c1",
  body: { messages, ...more },
});
const user = (content: string) => ({ role: "user", content });

const client: DoorClient = {
  say: (text) => sending([user(text)]),
  widened: (ambit) => sending([user("hello")], { ambit }),
  forged: {
    "an earlier answer": (text) => sending([{ role: "assistant", content: text }, user("hello")]),
  },
  finished: /"ok":true/,
  failed: /"ok":false/,
};

/** Reads a log whole, whatever becomes of it. */
async function* drained(log: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of log) pieces.push(piece);
  } catch {
    // Its client sees an end.
  }
  yield* pieces;
  yield new TextEncoder().encode('"ok":true');
}

let firstFetch: typeof fetch | undefined;
const firstBegin: Parts["begin"] = (request, call) => {
  firstFetch ??= call.fetch;
  return careful.begin(request, { ...call, fetch: firstFetch });
};

const mistakes: readonly (readonly [what: string, caughtBy: string, part: Partial<Parts>])[] = [
  ["begins a run of its own words", "says to the agent", { request: () => ({ messages: [user("go")] }) }],
  ["passes the past on", "nothing of the past", { request: ({ messages }) => ({ messages }) }],
  [
    "lets a page choose",
    "and no page",
    { request: ({ messages, ambit }) => ({ ...ambit, messages: messages.slice(-1) }) },
  ],
  [
    "has its template for a page too",
    "for a page only",
    { request: ({ messages }) => ({ harness: "demo", messages: messages.slice(-1) }) },
  ],
  ["keeps its first caller's API", "as the caller of each request", { begin: firstBegin }],
  [
    "trusts its body",
    "its client's mistake",
    { read: (body) => ({ messages: Object(body).messages.slice() }) },
  ],
  [
    "has one status for every refusal",
    "answers a refusal of the API",
    {
      begin: async (request, call) => {
        const log = await careful.begin(request, call);
        return log.ok ? log : new Response("busy", { status: 503 });
      },
    },
  ],
  [
    "says nothing of a failure",
    "that has failed",
    { body: (log) => log.pipeThrough(linesOf((line) => !line.includes('"ok":false'))) },
  ],
  ["ends what broke off", "whose log breaks off", { body: (log) => ReadableStream.from(drained(log)) }],
  ["passes every event on", "events of a type", { body: (log) => log }],
  [
    "reads on when its client has left",
    "when its client leaves",
    {
      begin: (request, { fetch }) =>
        fetch("http://ambit/stream", { method: "POST", body: JSON.stringify(request) }),
      body: (log) => {
        const reader = log.getReader();
        return new ReadableStream({
          pull: async (controller) => {
            const { value, done } = await reader.read();
            if (done) controller.close();
            else controller.enqueue(value);
          },
        });
      },
    },
  ],
  [
    "reads ahead",
    "no faster than its client",
    {
      body: (log) =>
        new ReadableStream({
          start: async (controller) => {
            for await (const piece of log) controller.enqueue(piece);
            controller.close();
          },
        }),
    },
  ],
];

describe("the kit of doors", () => {
  it.each(doorChecks)("lets a careful one pass: $title", async ({ check }) => {
    await check(doorOf(careful), client);
  });

  it.each(mistakes)("catches one that %s", async (_what, caughtBy, part) => {
    const [check, ...others] = doorChecks.filter(({ title }) => title.includes(caughtBy));
    expect(others).toEqual([]);
    await expect(check?.check(doorOf({ ...careful, ...part }), client, 100)).rejects.toThrow();
  });

  it("has a mistake for every check", () => {
    const caught = doorChecks.filter(({ title }) => mistakes.some(([, by]) => title.includes(by)));
    expect(caught).toEqual(doorChecks);
  });

  it("answers what a door throws as a server does, and names a route that isn't there", async () => {
    const api = new ScriptedApi();
    const stageOf = (handle: (call: DoorCall) => Promise<Response>) =>
      new DoorStage({ name: "odd", routes: [{ method: "POST", path: "/odd", summary: "Odd", handle }] }, api);
    const foreign = await stageOf(() => Promise.reject(new TypeError("no"))).send({ path: "/odd" });
    expect([foreign.status, await foreign.text()]).toEqual([500, expect.stringContaining("TypeError: no")]);
    const refused = stageOf(async ({ json }) => Response.json(await json()));
    expect((await refused.send({ path: "/odd" })).status).toBe(400);
    await expect(refused.send({ path: "/other" })).rejects.toThrow("has no route POST /other");
  });
});
