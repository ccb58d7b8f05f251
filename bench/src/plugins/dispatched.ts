import type { AgentEvent, Publication } from "@ambit/core/plugin";
import { HttpCaller } from "../http.js";
import { interleaved, timed } from "../measure.js";

const callsPerSample = 20;

/**
 * Calls the run's tool, and posts the same arguments directly to its target, in turn. Its output is the pairs as JSON.
 */
export async function* dispatched(
  publication: Publication,
  pairs: number,
  url: string,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void, undefined> {
  const [tool] = publication.tools;
  if (tool === undefined) throw new Error("dispatch needs a tool");
  const given = { query: "ada lovelace", limit: 10, tags: ["customer"] };
  const body = JSON.stringify({
    data: { id: "call-1", type: "function", function: { name: "crm.search_contacts.v0", arguments: given } },
  });
  const direct = new HttpCaller(url);
  const measured = await interleaved(
    () =>
      perCall(async () => {
        const { isError, output } = await publication.call({ name: tool.name, arguments: given, signal });
        if (isError) throw new Error(`the tool failed: ${output}`);
      }),
    () => perCall(() => direct.post("/", body)),
    { pairs, warmUp: 20 },
  );
  direct.close();
  yield { type: "message", text: JSON.stringify(measured) };
  yield { type: "done", stopReason: "end_turn" };
}

async function perCall(call: () => Promise<unknown>): Promise<number> {
  const took = await timed(async () => {
    for (let index = 0; index < callsPerSample; index += 1) await call();
  });
  return took / callsPerSample;
}
