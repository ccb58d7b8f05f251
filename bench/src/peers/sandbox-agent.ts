import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { demoAgentEntry } from "@ambit/agent-demo";
import { freePort } from "@ambit/backend-kit";
import { z } from "zod";
import { HttpCaller } from "../http.js";
import { pause } from "../machine/program.js";
import { temporaryFolder } from "../machine/temporary-folder.js";
import { installPeer, type Peer } from "./install-peer.js";

const sandboxAgent: Peer = {
  name: `@sandbox-agent/cli-linux-${process.arch}`,
  version: "0.4.2",
  license: "Apache-2.0",
  entry: "bin/sandbox-agent",
};

/** An agent that it knows, and whose launcher it takes from its data folder: here, the demo agent's. */
const agentName = "pi";
const startTimeoutMs = 15_000;

const responseSchema = z.object({
  result: z.looseObject({ sessionId: z.string().optional(), stopReason: z.string().optional() }),
});

/**
 * sandbox-agent's server on loopback, which drives the demo agent over ACP. It confines nothing. Its agents end with it:
 * its response to a `DELETE` of one doesn't come while the agent runs.
 */
export interface SandboxAgent extends AsyncDisposable {
  readonly pid: number;
  /** Starts an agent and its conversation. */
  open(agent: string): Promise<void>;
  /** One turn of an open agent, to its response. */
  prompt(agent: string, script: string): Promise<void>;
}

/** @throws Error when it can't be installed or doesn't start */
export async function startSandboxAgent(): Promise<SandboxAgent> {
  const program = fileURLToPath(await installPeer(sandboxAgent));
  await chmod(program, 0o755);
  await using opened = new AsyncDisposableStack();
  const home = opened.use(await temporaryFolder());
  await putAgent(home.path);
  const port = await freePort();
  const argv = ["server", "--no-token", "--no-telemetry", "--port", String(port)];
  const child = spawn(program, argv, {
    env: {
      HOME: home.path,
      PATH: `${join(home.path, "bin")}:/usr/bin:/bin`,
      SANDBOX_AGENT_REQUIRE_PREINSTALL: "1",
    },
    stdio: "ignore",
  });
  await once(child, "spawn");
  const { pid } = child;
  if (pid === undefined) throw new Error("sandbox-agent can't be started");
  const ended = once(child, "exit");
  opened.defer(async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 1_000);
    await ended;
    clearTimeout(timer);
  });
  const caller = opened.adopt(new HttpCaller(`http://127.0.0.1:${port}`), (one) => one.close());
  await healthy(caller, child);
  const sessions = new Map<string, string>();
  let last = 0;
  const ask = async (agent: string, method: string, params: object) => {
    last += 1;
    const body = JSON.stringify({ jsonrpc: "2.0", id: last, method, params });
    const { status, text } = await caller.post(`/v1/acp/${agent}?agent=${agentName}`, body);
    if (status !== 200)
      throw new Error(`sandbox-agent answered ${method} with ${status}: ${text.slice(0, 500)}`);
    return responseSchema.parse(JSON.parse(text)).result;
  };
  const open = async (agent: string) => {
    await ask(agent, "initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await ask(agent, "session/new", { cwd: home.path, mcpServers: [] });
    if (sessionId === undefined) throw new Error("sandbox-agent gave no session");
    sessions.set(agent, sessionId);
  };
  const prompt = async (agent: string, script: string) => {
    const sessionId = sessions.get(agent);
    const content = [{ type: "text", text: script }];
    const { stopReason } = await ask(agent, "session/prompt", { sessionId, prompt: content });
    if (stopReason !== "end_turn") throw new Error(`sandbox-agent's turn ended with ${stopReason}`);
  };
  const owned = opened.move();
  return { pid, open, prompt, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Where it looks for agents that were installed before. */
async function putAgent(home: string): Promise<void> {
  const launchers = join(home, ".local/share/sandbox-agent/bin/agent_processes");
  const programs = join(home, "bin");
  const launcher = `#!/bin/sh\nexec '${process.execPath}' '${demoAgentEntry}'\n`;
  for (const [folder, name, text] of [
    [launchers, `${agentName}-acp`, launcher],
    [programs, `${agentName}-acp`, launcher],
    [programs, agentName, "#!/bin/sh\necho 1.0.0\n"],
    [join(home, ".local/share/sandbox-agent/bin"), agentName, "#!/bin/sh\necho 1.0.0\n"],
  ] as const) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, name), text, { mode: 0o755 });
  }
}

async function healthy(caller: HttpCaller, child: { readonly exitCode: number | null }): Promise<void> {
  const until = performance.now() + startTimeoutMs;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`sandbox-agent left with ${child.exitCode}`);
    const status = await caller.get("/v1/health").then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) return;
    if (performance.now() > until) throw new Error("sandbox-agent isn't healthy");
    await pause(5);
  }
}
