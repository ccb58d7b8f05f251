// A client of Ambit's server, typed by the schema that `npm run generate` makes from its OpenAPI document.
import createClient from "openapi-fetch";
import type { components, paths } from "../generated/schema.js";

type RunRequest = components["schemas"]["RunRequest"];
type StreamRecord = components["schemas"]["StreamRecord"];

const { AMBIT_TOKEN: token } = process.env;
const client = createClient<paths>({
  baseUrl: process.argv[2] ?? "http://127.0.0.1:8765",
  headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
});
const saying = (content: string): RunRequest => ({ harness: "demo", messages: [{ role: "user", content }] });

// One response: the result, or a failure with its fix.
const { data: result } = await client.POST("/run", { body: saying("say hello") });
console.log("said:", result !== undefined && "output" in result ? result.output : undefined);

const { error } = await client.POST("/run", { body: {} });
console.log("refused:", error?.failure.code, error?.failure.issues?.[0]?.path);

// A stream: records as they happen, the last of them the result.
const streamed = await client.POST("/stream", { body: saying("say hello"), parseAs: "text" });
const records: StreamRecord[] = (streamed.data ?? "")
  .split("\n")
  .filter((line) => line !== "") // Blank lines keep a silent stream alive.
  .map((line) => JSON.parse(line));
const last = records.at(-1);
console.log("streamed:", records.length > 1, last?.kind === "result" && last.result.ok);

// A run with an id of the caller's can be cancelled before its response arrives.
const runId = crypto.randomUUID();
const answer = client.POST("/run", { body: { ...saying("sleep 60000"), runId } });
let cancelled = false;
while (!cancelled) {
  const { response } = await client.POST("/runs/{runId}/cancel", { params: { path: { runId } } });
  cancelled = response.ok;
}
const { data: ended } = await answer;
console.log("cancelled:", ended !== undefined && "stopReason" in ended ? ended.stopReason : undefined);
