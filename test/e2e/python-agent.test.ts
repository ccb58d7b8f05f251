// needs: jail, python
import { chmod, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect, it } from "vitest";
import { bodyOf, demo, emptyFolder, serve } from "./support/ambit.js";

/** Speaks just enough ACP for one turn, and says where a module of its virtual environment is from. */
const agent = `
import json, sys
import ours
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
    elif method == "session/new":
        result = {"sessionId": "one"}
    elif method == "session/prompt":
        text = " ".join([ours.__file__, sys.prefix])
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        send({"method": "session/update", "params": {"sessionId": params["sessionId"], "update": update}})
        result = {"stopReason": "end_turn"}
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    send({"id": message["id"], "result": result})
`;

it("starts an agent with the Python of a virtual environment, which has its packages", {
  timeout: 120_000,
}, async () => {
  const folder = await emptyFolder();
  await chmod(folder, 0o755);
  const environment = join(folder, "agent", ".venv");
  await execa("python3", ["-m", "venv", "--without-pip", environment]);
  const [version = ""] = await readdir(join(environment, "lib"));
  const packages = join(environment, "lib", version, "site-packages");
  await writeFile(join(packages, "ours.py"), "");
  await writeFile(join(packages, "agent.py"), agent);
  const script = join(environment, "bin", "agent");
  await writeFile(script, `#!${environment}/bin/python\nimport agent\n`);
  await chmod(script, 0o755);
  const agents = {
    module: { command: join(environment, "bin", "python"), args: ["-m", "agent"] },
    script: { command: script },
  };
  const config = join(folder, "ambit.config.json");
  const plugins = ["@ambit/sandbox-local", { use: "@ambit/harness-acp", config: { agents } }];
  await writeFile(config, JSON.stringify({ plugins, probes: { keepAcrossRestarts: true } }));
  const server = await serve({}, ["--config", config]);
  for (const harness of Object.keys(agents)) {
    const request = { ...demo("hi"), harness, sandboxPermission: { network: "off" } };
    const result = await bodyOf(await server.post("/run", request));
    expect(result, server.log()).toMatchObject({
      ok: true,
      output: `${packages}/ours.py ${environment}`,
    });
  }
});
