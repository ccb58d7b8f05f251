import { setImmediate as nextTurn } from "node:timers/promises";
import {
  inOffer,
  isAmbitError,
  type Log,
  limits,
  messageOf,
  offerTitle,
  outsideOffers,
  PluginBrokeContract,
} from "@ambit/core";
import { apiRefusalSchema, type Door } from "@ambit/core/plugin";
import { MalformedJson } from "../../results.js";
import { callerIdOf, callerOf, tokenHeadersOf } from "../../tenants/caller.js";
import { tokenOfUrl, urlTokenHeaders } from "../caller/admit-caller.js";
import { endsWithHeaders, RecordWriter } from "../response/records.js";
import { HttpRefusal } from "../response/refusal.js";
import { json, leftSignal } from "../response/send.js";
import { failed } from "../route/responses.js";
import { type HttpRoute, streaming } from "../route/route.js";
import type { Exchange } from "../server-context.js";

/** The routes of the loaded doors. */
export function doorRoutes(doors: readonly Door[]): HttpRoute[] {
  return doors.flatMap((door) =>
    (door.routes ?? []).map((route): HttpRoute => {
      const { method, path, summary } = route;
      const words = `${door.name}${path.slice(door.name.length + 1)}`.split(/[^a-zA-Z0-9]+/).filter(Boolean);
      return {
        method,
        path,
        isDoor: true,
        operation: {
          operationId: [method.toLowerCase(), ...words].join("_"),
          tag: { door: door.name },
          summary,
          description: `A route of the door ${door.name}, for clients of its protocol.`,
          responses: {
            "2XX": { description: `What the protocol of the door ${door.name} says.` },
            ...failed(),
          },
        },
        handle: streaming(async ({ context, exchange, path: parameter }) => {
          const { incoming, outgoing } = exchange;
          const caller = callerOf(incoming);
          const request = requestOf(exchange, tokenHeadersOf(context.runner.registry.dialects));
          // Its signal follows the caller only while it is reachable, and a door may keep nothing but the signal.
          outgoing.once("close", () => void request);
          const call = {
            request,
            path: parameter,
            json: () => outsideOffers(() => context.bodies.json(incoming, limits.bodyBytes)),
            fetch: context.inner.fetchAs(caller),
            caller: caller.kind === "page" ? "page" : "platform",
            get callerId() {
              return callerIdOf(caller);
            },
          } as const;
          await sendResponse(outgoing, await responseOf(door, () => route.handle(call)), context.log);
        }),
      };
    }),
  );
}

/** @throws PluginBrokeContract for what a door must not return or throw */
async function responseOf(door: Door, handle: () => Promise<Response>): Promise<Response> {
  try {
    const response: unknown = await inOffer(door, handle);
    if (response instanceof Response) return response;
  } catch (cause) {
    const { data: refusal } = apiRefusalSchema.safeParse(cause);
    if (refusal !== undefined) return json(refusal.status, refusal.result, refusal.headers);
    if (isAmbitError(cause) || cause instanceof HttpRefusal || cause instanceof MalformedJson) throw cause;
    const message = `${offerTitle(door)} threw what is no error of Ambit's; the runner's log has the cause.`;
    throw new PluginBrokeContract(message, { cause });
  }
  throw new PluginBrokeContract(`${offerTitle(door)} returned what is no Response from handle().`);
}

/** A request as a door sees it. */
function requestOf({ incoming, outgoing }: Exchange, tokenHeaders: readonly string[]): Request {
  const { method = "GET", url = "/", headersDistinct } = incoming;
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    if (name !== "cookie" && !tokenHeaders.includes(name))
      for (const value of values) headers.append(name, value);
  return new Request(new URL(url, "http://localhost"), { method, headers, signal: leftSignal(outgoing) });
}

/** Sends a door's response as fast as it is read. One whose body fails ends with its connection. */
async function sendResponse(
  outgoing: Exchange["outgoing"],
  { status, headers, body }: Response,
  log: Log,
): Promise<void> {
  if (outgoing.destroyed) return void (await body?.cancel());
  const sent = new Headers(headers);
  if (tokenOfUrl(outgoing.req) !== undefined)
    for (const [name, value] of Object.entries(urlTokenHeaders)) sent.set(name, value);
  outgoing.writeHead(status, [...sent].flat());
  if (body === null) return void outgoing.end();
  if (endsWithHeaders(outgoing)) return await body.cancel();
  // The first part often follows at once: then the headers go with it.
  const flush = setImmediate(() => outgoing.flushHeaders());
  const reader = body.getReader();
  outgoing.once("close", () => void reader.cancel().catch(() => undefined));
  const writer = new RecordWriter(outgoing);
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      clearImmediate(flush);
      const room = writer.write(part.value);
      if (room !== undefined) await room;
    }
    writer.end();
  } catch (error) {
    if (!outgoing.destroyed) log.debug({ error: messageOf(error) }, "a door's response ends early");
    // What was written in this turn of the loop leaves before the connection ends.
    outgoing.flushHeaders();
    await nextTurn();
    outgoing.destroy();
  }
}
