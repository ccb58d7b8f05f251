import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { messageOf, NotFound } from "@ambit/core";
import { type Sandbox, unlessAborted, validBody } from "@ambit/core/plugin";
import { type OpenedTerminal, openTerminal } from "@ambit/workspace";
import { callerOf, personOf, principalOf } from "../../tenants/caller.js";
import { keepAlive, mediaTypes, RecordWriter } from "../response/records.js";
import { json, leftSignal } from "../response/send.js";
import { body, failed, jsonResponse, reference } from "../route/responses.js";
import { type HttpRoute, type RouteCall, streaming } from "../route/route.js";
import {
  type ForwardedResponse,
  type TerminalRecord,
  terminalInputSchema,
  terminalRequestSchema,
} from "../route-schemas.js";
import { projectIn, refuseAbsent } from "../runs/find-run.js";
import { sessionsProject } from "../runs/parameters.js";
import type { Exchange } from "../server-context.js";

/** Bytes of a body: the longest input, each of whose characters JSON may write as six. */
const bodyLimit = 512 * 1024;

/** The routes of terminals in sessions. */
export const terminalRoutes: readonly HttpRoute[] = [
  {
    method: "POST",
    path: "/sessions/{sessionId}/terminals",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "openTerminal",
      tag: "Sessions",
      summary:
        "A terminal in an idle session: a shell with the session's boundary, where the server allows it",
      description:
        "Answers with the terminal's lines as NDJSON, first `opened`, at last `ended`; blank lines keep the connection open. The shell ends with this connection, with the session, and after `server.terminals.idleTimeoutMs` without input. Until then, the session's runs wait or are refused. A slow reader holds the shell back.",
      requestBody: body("TerminalRequest", false),
      responses: {
        200: {
          description: "What the terminal prints.",
          content: { "application/x-ndjson": { schema: reference("TerminalRecord") } },
        },
        ...failed(400, 404, 408, 409, 413, 502, 503),
      },
    },
    handle: streaming(handleOpenTerminal),
  },
  {
    method: "POST",
    path: "/sessions/{sessionId}/terminals/{terminalId}",
    query: [sessionsProject],
    refusesOthers: true,
    operation: {
      operationId: "terminalInput",
      tag: "Sessions",
      summary: "Types into a terminal, or changes its size",
      description: "Answered once the terminal has taken it: send one after the other.",
      requestBody: body("TerminalInput", true),
      responses: {
        200: jsonResponse("The terminal has it.", "ForwardedResponse"),
        ...failed(400, 404, 408, 413, 503),
      },
    },
    handle: handleTerminalInput,
  },
];

/** `POST /sessions/:sessionId/terminals` */
async function handleOpenTerminal(call: RouteCall): Promise<void> {
  const { context, exchange } = call;
  const { terminals, runner, log, bodies } = context;
  terminals.requireEnabled();
  const name = { session: call.path("sessionId"), project: projectIn(call) };
  const size = validBody(terminalRequestSchema, await bodies.json(exchange.incoming, bodyLimit));
  const visitor = visitorOf(exchange.incoming);
  const id = randomUUID();
  const about = { ...name, terminal: id, visitor };
  await terminals.withPlace(id, name, async (place) => {
    const act = async (sandbox: Sandbox, interrupted: AbortSignal, begin: () => void) => {
      const ended = new AbortController();
      const reasons = [leftSignal(exchange.outgoing), interrupted, place.idle, ended.signal];
      const signal = AbortSignal.any(reasons);
      const terminal = await openTerminal(sandbox, size, signal);
      begin();
      place.open(terminal);
      log.info(about, "a terminal was opened in a session");
      try {
        return await send(id, terminal, exchange, signal);
      } finally {
        ended.abort();
        await terminal.exitCode;
        log.info(about, "a terminal has ended");
      }
    };
    const end = await runner.visit(name, visitor, act);
    if (end === undefined) return await refuseAbsent(context, name.session, name.project);
    // The session is free by now, for whoever waits for this line.
    exchange.outgoing.end(lineOf(end));
  });
}

/** `POST /sessions/:sessionId/terminals/:terminalId` */
async function handleTerminalInput(call: RouteCall): Promise<Response> {
  const { context, exchange } = call;
  const place = context.terminals.get(call.path("terminalId"));
  const project = projectIn(call);
  const { input, columns, rows } = validBody(
    terminalInputSchema,
    await context.bodies.json(exchange.incoming, bodyLimit),
  );
  const terminal = place?.terminal;
  if (terminal === undefined || place?.session !== call.path("sessionId") || place.project !== project)
    throw new NotFound(
      "There is no such terminal here: it has ended, as it does with its connection. Open a new one.",
    );
  await place.input(async () => {
    if (columns !== undefined && rows !== undefined) await terminal.resize({ columns, rows });
    if (input !== undefined) await terminal.write(input);
  });
  return json(200, { ok: true } satisfies ForwardedResponse);
}

/** Sends what the terminal prints, at the pace of the reader. @returns its last record */
async function send(
  terminalId: string,
  terminal: OpenedTerminal,
  { outgoing }: Exchange,
  signal: AbortSignal,
): Promise<TerminalRecord> {
  outgoing.writeHead(200, {
    "content-type": mediaTypes.ndjson,
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  const writer = new RecordWriter(outgoing);
  using _alive = keepAlive("ndjson", writer);
  const write = (record: TerminalRecord) => unlessAborted(signal, async () => writer.write(lineOf(record)));
  try {
    await write({ kind: "opened", terminalId });
    for await (const bytes of terminal.output)
      await write({ kind: "output", data: Buffer.from(bytes).toString("base64") });
    return { kind: "ended", exitCode: await unlessAborted(signal, () => terminal.exitCode) };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { kind: "ended", exitCode: null, reason: messageOf(error) };
  }
}

const lineOf = (record: TerminalRecord) => `${JSON.stringify(record)}\n`;

/** For the log, and the session's next run. */
function visitorOf(incoming: IncomingMessage): string {
  const principal = principalOf(callerOf(incoming));
  const caller =
    principal.kind === "tenant" ? `the project ${JSON.stringify(principal.tenant.project)}` : "the operator";
  const person = personOf(incoming);
  return person === undefined ? caller : `${caller} (${JSON.stringify(person)})`;
}
