import type { RunRequest, StreamRecord } from "@ambit/client";
import { Conversation, eventStream, safeText } from "@ambit/client/conversation";
import { type Door, type DoorCall, definePlugin, validBody } from "@ambit/core/plugin";
import { z } from "zod";

/**
 * Lets clients of another protocol use Ambit: `POST /sample/ask` with `{"chat": "c1", "prompt": "say hello"}`, answered by
 * events `{"text": …}`, and at the end `{"end": …}` or `{"error": …}`. A chat is a session: its agent remembers what was said.
 */
export function door(template: RunRequest): Door {
  return {
    name: "sample",
    routes: [
      {
        method: "POST",
        path: "/sample/ask",
        summary: "Says something in a chat",
        handle: (call) => ask(call, template),
      },
    ],
  };
}

/** Nothing of the past: Ambit knows it, and a client could claim anything. */
const bodySchema = z.strictObject({ chat: z.string().min(1).max(128), prompt: z.string().min(1) });

async function ask(call: DoorCall, template: RunRequest): Promise<Response> {
  const { chat, prompt } = validBody(bodySchema, await call.json());
  // The token of a page has its request: such a caller brings nothing but messages.
  const request = call.caller === "page" ? {} : template;
  const conversation = Conversation.of(call, chat);
  const run = conversation.begin({ ...request, messages: [{ role: "user", content: prompt }] });
  const records = conversation.records(run);
  // A run that is refused is answered by the refusal and its status, before anything is sent.
  const first = await records.next();
  const events = (async function* () {
    if (first.done !== true) yield eventsOf(first.value);
    for await (const record of records) yield eventsOf(record);
  })();
  // Made as the client reads it. Where the run's log breaks off, so does this: it never looks finished.
  return new Response(eventStream(events), { headers: { "content-type": "text/event-stream" } });
}

/** What a client reads of a record of the run's log. Pure. A later version of Ambit may have further types of events. */
export function eventsOf(record: StreamRecord): readonly object[] {
  if (record.kind === "result") {
    const { result } = record;
    return [result.ok ? { end: result.stopReason } : { error: safeText(result) }];
  }
  const { event } = record;
  switch (event.type) {
    case "message":
      return [{ text: event.text }];
    case "message_delta":
      return [{ text: event.delta }];
    default:
      return [];
  }
}

const configSchema = z.strictObject({
  /** The request of every chat: its agent, tools and boundary, in the contract's fields. The server checks it. Default: empty. */
  request: z
    .custom<RunRequest>((value) => z.record(z.string(), z.unknown()).safeParse(value).success)
    .default({}),
});

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, { request }) => registrar.add("door", door(request)),
});
