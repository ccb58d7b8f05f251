/** An agent that the ACP SDK drives directly. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { type AgentLaunch, launchOf, nodeOf } from "./agent-launch.js";
import { type DirectTools, openDirectTools } from "./direct-tools.js";
import type { PromptFigures, Subject } from "./driver-messages.js";

export interface OpenAgent {
  prompt(script: string): Promise<PromptFigures>;
  close(): Promise<void>;
}

/** An agent that has answered `initialize`. */
export interface BegunAgent {
  /** Its one conversation. */
  converse(): Promise<OpenAgent>;
  close(): Promise<void>;
}

/** @param said called with each piece of its answer; the agent waits for it. */
export async function openAgent(
  subject: Subject | undefined,
  toolUrl: string | undefined,
  said?: (text: string) => void | Promise<void>,
): Promise<OpenAgent> {
  const begun = await beginAgent(subject, toolUrl, said);
  return await begun.converse();
}

/** @param said as for {@link openAgent} */
export async function beginAgent(
  subject: Subject | undefined,
  toolUrl: string | undefined,
  said: (text: string) => void | Promise<void> = () => {},
): Promise<BegunAgent> {
  const home = mkdtempSync(join(tmpdir(), "ambit-bench-agent-"));
  const launch = launchOf(subject, home, toolUrl);
  const tools: DirectTools | undefined =
    toolUrl === undefined || launch.hasTools === true ? undefined : await openDirectTools(toolUrl);
  const { argv, env } = commandOf(subject, launch, home);
  const child = spawn(argv[0], argv.slice(1), {
    cwd: home,
    env,
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
  });
  const ended = once(child, "exit");
  let seen: { at: number; kind: string }[] = [];
  let updates = 0;
  let completed = 0;
  const { agent } = acp
    .client({ name: "bench" })
    .onNotification("session/update", ({ params }) => {
      updates += 1;
      if ("status" in params.update && params.update.status === "completed") completed += 1;
      const { sessionUpdate } = params.update;
      const isFirstWord = sessionUpdate === "agent_message_chunk" && seen.length === 0;
      if (sessionUpdate.startsWith("tool_call") || isFirstWord)
        seen.push({ at: performance.now(), kind: sessionUpdate });
      if (sessionUpdate !== "agent_message_chunk") return undefined;
      const { content } = params.update;
      return content.type === "text" ? said(content.text) : undefined;
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
  const converse = async (): Promise<OpenAgent> => {
    const { sessionId } = await agent.request("session/new", {
      cwd: home,
      mcpServers: tools?.servers ?? [],
      ...(launch.sessionMeta === undefined ? {} : { _meta: launch.sessionMeta }),
    });
    await tools?.listed;
    return {
      prompt: async (script) => {
        seen = [];
        updates = 0;
        completed = 0;
        const begun = performance.now();
        await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: script }] });
        const ended = performance.now();
        const calls = seen.filter(({ kind }) => kind.startsWith("tool_call"));
        const first = calls[0]?.at ?? 0;
        return {
          updates,
          completed,
          ms: ended - begun,
          toolsMs: (calls.at(-1)?.at ?? 0) - first,
          sinceFirstMs: ended - (seen[0]?.at ?? begun),
        };
      },
      close,
    };
  };
  return { converse, close };
}

interface Started {
  readonly argv: readonly [program: string, ...args: string[]];
  readonly env: Readonly<Record<string, string>>;
}

/** The agent's own variables and PATH. In a container the folder has the same path, and PATH is the image's. */
function commandOf(subject: Subject | undefined, launch: AgentLaunch, home: string): Started {
  const own = { HOME: home, ...launch.environment };
  const program = [nodeOf(subject), ...launch.arguments] as const;
  // Without npm's additions: pi-acp looks for updates with the first `pi` on the PATH.
  const folders = (process.env.PATH ?? "").split(":");
  const path = folders.filter((folder) => !folder.endsWith("node_modules/.bin")).join(":");
  if (subject?.container === undefined) return { argv: program, env: { PATH: path, ...own } };
  const { socket, id } = subject.container;
  const variables = Object.entries(own).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  const argv = ["docker", "exec", "-i", "--workdir", home, ...variables, id, ...program] as const;
  return { argv, env: { PATH: path, HOME: home, DOCKER_HOST: `unix://${socket}` } };
}
