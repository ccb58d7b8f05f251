import type { RunRequest } from "@ambit/client";
import type { RunPlace } from "../../server/client.js";
import type { RunSnapshot } from "../../server/run-log.js";

/** The mark that replaces a secret in a request that is kept. */
export const hidden = "[redacted]";

/** A request that begins another run: without what names this one, and without empty lists. Pure. */
export function anew({
  runId: _run,
  turnId: _turn,
  sessionId: _session,
  ...request
}: RunRequest): RunRequest {
  const isEmptyList = (value: unknown) => Array.isArray(value) && value.length === 0;
  return Object.fromEntries(Object.entries(request).filter(([, value]) => !isEmptyList(value)));
}

/** A command that follows a run, for a terminal. */
export function curlThatFollows({ runId, projectId }: RunPlace): string {
  const query = projectId === undefined ? "" : `?projectId=${encodeURIComponent(projectId)}`;
  const url = `${location.origin}/runs/${encodeURIComponent(runId)}/events${query}`;
  return `curl -N -H "Authorization: Bearer $AMBIT_TOKEN" ${quoted(url)}`;
}

/** A command that begins a run like the one with this request. */
export function curlThatRepeats(request: RunRequest): string {
  const headers = `-H "Authorization: Bearer $AMBIT_TOKEN" -H 'content-type: application/json'`;
  return `curl -N ${headers} ${quoted(`${location.origin}/stream`)} -d ${quoted(JSON.stringify(request))}`;
}

/** Quotes a text for a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** A file for `ambit run`. Pure. */
export const requestFileOf = (request: RunRequest) => `${JSON.stringify(request, undefined, 2)}\n`;

/**
 * A program for `node --test` that begins a run like this one, and expects the same outcome, and the same tools in their order.
 * What is hidden in the request is read from the environment. Pure.
 */
export function testCaseOf(
  request: RunRequest,
  { entries, result }: Pick<RunSnapshot, "entries" | "result">,
): string {
  const tools = entries.flatMap((entry) =>
    entry.kind === "call" && !entry.isSetup && entry.depth === 0 ? [entry.name] : [],
  );
  const outcome =
    result?.ok === true
      ? { ok: true, stopReason: result.stopReason }
      : { ok: false, code: result?.failure?.code };
  let secrets = 0;
  // Strings, and the colon after those that are keys.
  const sent = requestFileOf(request).replaceAll(/"(?:[^"\\]|\\.)*"(:?)/g, (text, colon: string) => {
    if (colon !== "" || !text.includes(hidden)) return text;
    secrets += 1;
    return `${text}.replaceAll("${hidden}", process.env.AMBIT_TEST_SECRET_${secrets} ?? "")`;
  });
  return `import assert from "node:assert/strict";
import { test } from "node:test";
import { AmbitClient } from "@ambit/client";

const { AMBIT_URL: url = "http://127.0.0.1:8765", AMBIT_TOKEN: token } = process.env;
const client = new AmbitClient({ url, token });

const request = ${sent.trimEnd()};

test("the run comes to the same", async () => {
  const run = client.run(request);
  const tools = [];
  const read = async () => {
    for await (const event of run)
      if (event.type === "tool_call" && event.parentToolCallId === undefined) tools.push(event.name);
    const { ok, stopReason } = await run.result;
    return { ok, stopReason };
  };
  const outcome = await read().catch(({ code }) => ({ ok: false, code }));
  assert.deepEqual(outcome, ${JSON.stringify(outcome)});
  assert.deepEqual(tools, ${JSON.stringify(tools)});
});
`;
}
