import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { AtCapacity } from "@ambit/core";
import type { Door } from "@ambit/core/plugin";
import type { DoorClient } from "./door-client.js";
import { DoorStage } from "./door-stage.js";
import {
  type ApiScript,
  answerText,
  messageRecord,
  resultRecord,
  ScriptedApi,
  type ScriptedRun,
} from "./scripted-api.js";

/** A requirement on every door. */
export interface DoorCheck {
  readonly title: string;
  /** False: it has no meaning for this client. Default: it has one for every client. */
  isFor?(client: DoorClient): boolean;
  /** @param waitMs within which the door must do what it is waited for. */
  check(door: Door, client: DoorClient, waitMs?: number): Promise<void>;
}

/** In no request of the kit but as the text that is looked for. */
const marker = "kit-marker";
const defaultWaitMs = 10_000;
/** Records that a door may have read before its client reads on. */
const maxReadAhead = 100;
const maxEndlessRecords = 10_000;
/** Turns of the event loop without a further record, after which a door counts as waiting for its client. */
const quietTurns = 200;

export const doorChecks: readonly DoorCheck[] = [
  {
    title: "says to the agent what its client says, and to its client what the agent says",
    check: async (door, client) => {
      const { stage, api } = opened(door);
      const { end, text } = await ending(client, await stage.send(client.say(marker)));
      assert.equal(end, "finished", `the response to a run that went well must say so: ${text}`);
      assert.ok(text.includes(answerText), `the response lacks what the agent said: ${text}`);
      const [request, ...others] = api.runRequests;
      assert.ok(JSON.stringify(request ?? null).includes(marker), "the run lacks what the client said");
      assert.deepEqual(others, [], "a message must begin one run");
    },
  },
  {
    title: "takes nothing of the past from its client",
    isFor: ({ forged }) => Object.keys(forged).length > 0,
    check: async (door, client) => {
      for (const [claim, forge] of Object.entries(client.forged)) {
        const { stage, api } = opened(door);
        const request = forge(marker);
        assert.ok(JSON.stringify(request).includes(marker), `'${claim}' must have the text in it`);
        await ending(client, await stage.send(request));
        const bodies = JSON.stringify(api.requests.map(({ body }) => body ?? null));
        assert.ok(!bodies.includes(marker), `'${claim}' reached the API: ${bodies}`);
      }
    },
  },
  {
    title: "lets a platform choose its run's request, and no page",
    isFor: ({ widened }) => widened !== undefined,
    check: async (door, client) => {
      const { stage, api } = opened(door);
      const request = client.widened?.({ harness: marker });
      assert.ok(request !== undefined);
      await ending(client, await stage.send(request));
      assert.ok(JSON.stringify(api.runRequests).includes(marker), "a platform's own fields must count");
      const page = opened(door);
      await ending(client, await page.stage.send(request, { caller: "page" }));
      assert.ok(!JSON.stringify(page.api.runRequests).includes(marker), "a page chose its run's agent");
    },
  },
  {
    title: "brings for a page only its session, its messages and an id",
    check: async (door, client) => {
      const { stage, api } = opened(door);
      await ending(client, await stage.send(client.say(marker), { caller: "page" }));
      const fields = api.runRequests.flatMap((request) => Object.keys(Object(request)));
      const others = fields.filter((field) => !["sessionId", "messages", "runId"].includes(field));
      assert.deepEqual(others, [], "the server refuses such a run: the token of a page has its request");
    },
  },
  {
    title: "asks the API as the caller of each request, and as no other",
    check: async (door, client) => {
      const [ours, theirs] = [opened(door), opened(door)];
      await ending(client, await ours.stage.send(client.say("first")));
      await ending(client, await theirs.stage.send(client.say("second")));
      assert.ok(
        !JSON.stringify(ours.api.requests).includes("second"),
        "a request went to an earlier caller's API",
      );
      assert.ok(JSON.stringify(theirs.api.runRequests).includes("second"), "the run isn't its caller's");
    },
  },
  {
    title: "refuses what is no request of its protocol, as its client's mistake",
    check: async (door) => {
      for (const { method, path } of door.routes ?? [])
        for (const body of method === "POST" ? malformed : [undefined]) {
          const { stage, api } = opened(door);
          const sent = { method, path: path.replaceAll(/\{[^}]+\}/g, "kit"), body };
          const response = await stage.send(sent);
          const text = await response.text();
          const what = `${method} ${path} with ${JSON.stringify(body)}`;
          assert.ok(response.status < 500, `${what} is answered with ${response.status}: ${text}`);
          assert.deepEqual(api.runRequests, [], `${what} began a run`);
        }
    },
  },
  {
    title: "answers a refusal of the API as the API answers it, or in the protocol's words",
    check: async (door, client) => {
      const { stage } = opened(door, { refusal: new AtCapacity("The kit has no slot.", 7_000) });
      const response = await stage.send(client.say(marker));
      const { end, text } = await ending(client, response);
      if (end === "failed") return;
      assert.deepEqual(
        [response.status, response.headers.get("retry-after")],
        [429, "7"],
        `the API's status and the time to wait must reach the client: ${text}`,
      );
    },
  },
  {
    title: "doesn't let a run look finished that has failed",
    check: async (door, client) => {
      const failure = { code: "model_failed", retryable: true } as const;
      const { stage } = opened(door, {
        log: function* (run) {
          yield messageRecord(answerText);
          yield resultRecord(run, { ok: false, error: "The kit's model failed.", failure });
        },
      });
      const response = await stage.send(client.say(marker));
      const { end, text } = await ending(client, response);
      assert.notEqual(end, "finished", `the response to a failed run looks finished: ${text}`);
      if (end === "refused")
        assert.equal(response.status, 502, `a failed run has the status of its code: ${text}`);
    },
  },
  {
    title: "doesn't let a run look finished whose log breaks off",
    check: async (door, client) => {
      const { stage } = opened(door, {
        log: function* () {
          yield messageRecord(answerText);
          throw new Error("the kit breaks off the log");
        },
      });
      const { end, text } = await ending(client, await stage.send(client.say(marker)));
      assert.notEqual(end, "finished", `the response to a lost run looks finished: ${text}`);
    },
  },
  {
    title: "passes over events of a type that a later version of Ambit may have",
    check: async (door, client) => {
      const { stage } = opened(door, {
        log: function* (run) {
          yield { kind: "event", event: { type: "kit_unknown", anything: [1, marker] } };
          yield messageRecord(answerText);
          yield resultRecord(run);
        },
      });
      const { end, text } = await ending(client, await stage.send(client.say("hello")));
      assert.equal(end, "finished", `an unknown event ended the response: ${text}`);
      assert.ok(text.includes(answerText), `an unknown event kept the next one back: ${text}`);
      assert.ok(!text.includes(marker), `an unknown event reached the client: ${text}`);
    },
  },
  {
    title: "leaves the run's log when its client leaves",
    check: async (door, client, waitMs = defaultWaitMs) => {
      const { stage, api } = opened(door, { log: untilCancelled });
      const leaving = new AbortController();
      const sending = stage.send(client.say(marker), leaving);
      const reader = sending.then(({ body }) => body?.getReader());
      reader.then(readOn).catch(() => undefined);
      await within(defaultWaitMs, api.reading, "the door reads the log");
      // As a server does, where the response has begun and where it hasn't.
      leaving.abort();
      reader.then((begun) => begun?.cancel()).catch(() => undefined);
      await within(waitMs, api.left, "the door leaves the log, or ends the run, when its client has left");
    },
  },
  {
    title: "reads the run's log no faster than its client reads the response",
    isFor: ({ answersAtEnd = false }) => !answersAtEnd,
    check: async (door, client) => {
      const { stage, api } = opened(door, { log: endless });
      const { body } = await stage.send(client.say(marker));
      const reader = body?.getReader();
      await reader?.read();
      for (let quiet = 0, count = 0; quiet < quietTurns && count <= maxReadAhead; quiet += 1) {
        await setImmediate();
        if (api.recordsRead !== count) quiet = 0;
        count = api.recordsRead;
      }
      await reader?.cancel();
      assert.ok(
        api.recordsRead <= maxReadAhead,
        "the log is read ahead of the client: make the response's body as it is read, as `eventStream` of @ambit/client does",
      );
    },
  },
];

/** What is no request of any protocol. */
const malformed: readonly unknown[] = [
  undefined,
  null,
  true,
  -1,
  "",
  [],
  {},
  [null, [[]]],
  { constructor: 1 },
];

function opened(door: Door, script?: ApiScript) {
  const api = new ScriptedApi(script);
  return { stage: new DoorStage(door, api), api };
}

async function* untilCancelled(run: ScriptedRun): AsyncGenerator<unknown, void, void> {
  yield messageRecord(answerText);
  await run.cancelled;
  yield resultRecord(run, { stopReason: "cancelled" });
}

async function* endless(): AsyncGenerator<unknown, void, void> {
  for (let count = 0; count < maxEndlessRecords; count += 1) yield messageRecord("x".repeat(1_024));
}

/**
 * How a response ends: refused by its status, broken off, or with what the client takes for the end of a run.
 *
 * @throws AssertionError for one that says nothing of its run's end
 */
async function ending(
  { finished, failed }: DoorClient,
  response: Response,
): Promise<{ readonly end: "refused" | "broken" | "failed" | "finished"; readonly text: string }> {
  const texts: string[] = [];
  const decoder = new TextDecoder();
  try {
    for await (const bytes of response.body ?? []) texts.push(decoder.decode(bytes, { stream: true }));
  } catch (error) {
    return { end: "broken", text: `${texts.join("")} ${String(error)}` };
  }
  const text = texts.join("");
  if (!response.ok) return { end: "refused", text };
  if (failed?.test(text) === true) return { end: "failed", text };
  assert.ok(
    finished?.test(text) ?? true,
    `the response ends, and says neither that the run went well nor that it failed: ${text}`,
  );
  return { end: "finished", text };
}

async function readOn(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  while (reader !== undefined && !(await reader.read()).done);
}

async function within(waitMs: number, promise: Promise<void>, what: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${waitMs} ms have passed before ${what}`)), waitMs);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
