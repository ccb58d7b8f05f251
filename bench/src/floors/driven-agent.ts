/** An agent that the ACP SDK drives directly. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { launchOf } from "./agent-launch.js";
import { type DirectTools, openDirectTools } from "./direct-tools.js";
import type { PromptFigures, Subject } from "./driver-messages.js";

export interface OpenAgent {
  prompt(script: string): Promise<PromptFigures>;
  close(): Promise<void>;
}

export async function openAgent(
  subject: Subject | undefined,
  toolUrl: string | undefined,
): Promise<OpenAgent> {
  const home = mkdtempSync(join(tmpdir(), "ambit-bench-agent-"));
  const launch = launchOf(subject, home, toolUrl);
  const tools: DirectTools | undefined =
    toolUrl === undefined || launch.hasTools === true ? undefined : await openDirectTools(toolUrl);
  // Without npm's additions: pi-acp looks for updates with the first `pi` on the PATH.
  const folders = (process.env.PATH ?? "").split(":");
  const path = folders.filter((folder) => !folder.endsWith("node_modules/.bin")).join(":");
  const child = spawn(process.execPath, launch.arguments, {
    cwd: home,
    env: { PATH: path, HOME: home, ...launch.environment },
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  const ended = once(child, "exit");
  let calls: number[] = [];
  let completed = 0;
  const { agent } = acp
    .client({ name: "bench" })
    .onNotification("session/update", ({ params: { update } }) => {
      if ("status" in update && update.status === "completed") completed += 1;
      if (update.sessionUpdate.startsWith("tool_call")) calls.push(performance.now());
    })
    .onRequest("session/request_permission", ({ params }) => {
      const { optionId = "" } = params.options.find(({ kind }) => kind === "allow_once") ?? {};
      return { outcome: { outcome: "selected", optionId } };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const close = async () => {
    // With all processes that it started.
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
    await tools?.close();
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  };
  const { sessionId } = await agent.request("session/new", {
    cwd: home,
    mcpServers: tools?.servers ?? [],
    ...(launch.sessionMeta === undefined ? {} : { _meta: launch.sessionMeta }),
  });
  await tools?.listed;
  return {
    prompt: async (script) => {
      calls = [];
      completed = 0;
      await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: script }] });
      return { completed, toolsMs: (calls.at(-1) ?? 0) - (calls[0] ?? 0) };
    },
    close,
  };
}
