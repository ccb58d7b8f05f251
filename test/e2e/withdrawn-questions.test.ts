// needs: jail, python
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bodyOf, demo, emptyFolder, ndjson, recordsOf, serve } from "./support/ambit.js";

/**
 * Speaks just enough ACP to ask its user three times: twice at once, of which it withdraws the first when the second is
 * answered, and then the third.
 */
const agent = `
import json, sys
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def ask(id):
    schema = {"type": "object", "properties": {"branch": {"type": "string"}}}
    params = {"sessionId": "one", "mode": "form", "message": str(id), "requestedSchema": schema}
    send({"id": id, "method": "elicitation/create", "params": params})
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
    elif method == "session/new":
        send({"id": id, "result": {"sessionId": "one"}})
    elif method == "session/prompt":
        prompt = id
        ask(101)
        ask(102)
    elif method is not None and id is not None:
        send({"id": id, "error": {"code": -32601, "message": "unknown"}})
    elif id == 102:
        send({"method": "$/cancel_request", "params": {"requestId": 101}})
        ask(103)
    elif id == 103:
        text = {"type": "text", "text": "went on"}
        update = {"sessionUpdate": "agent_message_chunk", "content": text}
        send({"method": "session/update", "params": {"sessionId": "one", "update": update}})
        send({"id": prompt, "result": {"stopReason": "end_turn"}})
`;

it("a question that its agent withdraws takes no answer, and the run goes on", {
  timeout: 120_000,
}, async () => {
  const folder = await emptyFolder();
  const config = join(folder, "ambit.config.json");
  const agents = { asking: { command: "/usr/bin/env", args: ["python3", "-c", agent] } };
  const plugins = [{ use: "@ambit/harness-acp", config: { agents } }];
  const settings = { extends: "defaults", plugins, probes: { keepAcrossRestarts: true } };
  await writeFile(config, JSON.stringify(settings));
  const server = await serve({}, ["--config", config]);
  const request = {
    ...demo("go"),
    harness: "asking",
    sessionId: "withdrawing",
    sandboxPermission: { network: "off" },
    interactions: { waitMs: 60_000 },
  };
  const response = await server.post("/run", request, ndjson);
  let run = "";
  const answered = async (id: string) => {
    const answer = await server.post(`/runs/${run}/interactions/${id}`, { output: { branch: "main" } });
    return [answer.status, (await bodyOf<{ failure?: { code: string } }>(answer)).failure?.code];
  };
  const asked: string[] = [];
  const expired: string[] = [];
  for await (const record of recordsOf(response)) {
    if (record.kind === "result") {
      expect(record.result, `${record.result.error} ${server.log()}`).toMatchObject({
        ok: true,
        output: "went on",
      });
      break;
    }
    const { event } = record;
    if (event.type === "turn") run = event.turnId;
    if (event.type === "interaction_expired") expired.push(event.id);
    if (event.type !== "interaction_request") continue;
    asked.push(event.id);
    const [first = ""] = asked;
    if (asked.length === 3) expect(await answered(first)).toEqual([410, "interaction_expired"]);
    if (asked.length > 1) expect(await answered(event.id)).toEqual([200, undefined]);
  }
  expect(asked).toHaveLength(3);
  expect(expired).toEqual(asked.slice(0, 1));
});
