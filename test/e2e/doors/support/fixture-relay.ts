import { createServer, type IncomingMessage, request as requestOver, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { listening } from "@ambit/fakes/listening";
import { z } from "zod";

interface Call {
  readonly name: "run_agent" | "cancel_run";
  readonly arguments: Readonly<Record<string, string>>;
  readonly meta?: object;
}

const script = (...lines: readonly string[]): Call => ({
  name: "run_agent",
  arguments: { prompt: lines.join("\n") },
});
const asking = (...lines: readonly string[]): Call => ({
  ...script(...lines),
  meta: { "ambit/request": { permissions: { default: "ask" } } },
});

const secondsSchema = z.object({ seconds: z.number() });

/** The tools that the suite calls, as far as a run can be what they are. */
const fixtures: Readonly<Record<string, (given: unknown) => Call>> = {
  test_simple_text: () => script("say This is a simple text response for testing."),
  test_error_handling: () => script("fail no luck"),
  test_tool_with_progress: () => script("run true", "run true", "run true"),
  test_input_required_result_elicitation: () => asking("run true"),
  test_input_required_result_request_state: () => asking("run true"),
  test_input_required_result_tampered_state: () => asking("run true"),
  // The one tool that is answered at once.
  greet: () => ({ name: "cancel_run", arguments: { runId: "absent" } }),
  slow_compute: (given) => script(`sleep ${secondsSchema.parse(given).seconds * 1_000}`, "say Done."),
  failing_job: () => script("fail no luck"),
  confirm_delete: () => asking("run true", "say Done."),
  multi_input: () => asking("& run true", "& run false", "say Done."),
};

const callSchema = z.looseObject({
  method: z.literal("tools/call"),
  params: z.looseObject({
    name: z.string(),
    arguments: z.unknown().optional(),
    _meta: z.record(z.string(), z.unknown()).default({}),
  }),
});

/** The call of the door that a message with a call of a fixture becomes. */
function callOf(text: string) {
  const { data: message } = callSchema.safeParse(jsonOf(text));
  const name = message?.params.name ?? "";
  const fixture = Object.hasOwn(fixtures, name) ? fixtures[name] : undefined;
  if (message === undefined || fixture === undefined) return undefined;
  const { params } = message;
  const call = fixture(params.arguments);
  const _meta = { ...params._meta, ...call.meta };
  const translated = { ...params, name: call.name, arguments: call.arguments, _meta };
  return { fixture: name, name: call.name, text: JSON.stringify({ ...message, params: translated }) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * What the suite of MCP talks to instead of the server: it adds the token, which the suite can't, and calls of the tools
 * that it needs become calls of the door's own.
 *
 * @returns the address of the endpoint
 */
export async function relayFixtures(
  url: string,
  token: string,
  close: (end: () => void) => void,
): Promise<string> {
  const { port } = new URL(url);
  const relay = createServer((incoming, outgoing) => {
    pass(incoming, outgoing, { port, token }).catch(() => outgoing.destroy());
  });
  return `http://127.0.0.1:${await listening(relay, close)}/mcp`;
}

async function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { port, token }: { readonly port: string; readonly token: string },
): Promise<void> {
  const text = (await buffer(incoming)).toString();
  const call = callOf(text);
  const body = call?.text ?? text;
  const headers = {
    ...incoming.headers,
    authorization: `Bearer ${token}`,
    ...(call !== undefined && incoming.headers["mcp-name"] === call.fixture ? { "mcp-name": call.name } : {}),
    ...(body === "" ? {} : { "content-length": String(Buffer.byteLength(body)) }),
  };
  const { method, url: path } = incoming;
  const onward = requestOver({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", () => outgoing.destroy());
  outgoing.on("close", () => onward.destroy());
  onward.end(body);
}
