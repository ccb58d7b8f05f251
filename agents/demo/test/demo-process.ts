import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { onTestFinished } from "vitest";
import { demoAgentEntry } from "../dist/index.js";

/** The real program as a child process, with the real ACP client. Ends with the test. */
export interface DemoProcess {
  readonly child: ChildProcess;
  readonly agent: acp.ClientContext;
  readonly initialized: acp.InitializeResponse;
  /** Everything the agent sent, in order. */
  readonly updates: acp.SessionUpdate[];
  readonly questions: acp.RequestPermissionRequest[];
  /** What the agent printed on stderr so far. */
  stderr(): string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  newSession(mcpServers?: acp.McpServer[]): Promise<string>;
  prompt(sessionId: string, text: string): Promise<acp.PromptResponse>;
  /** All agent_message_chunk text, joined. */
  said(): string;
  /** Resolves once an update satisfies `wanted`. */
  seen(wanted: (update: acp.SessionUpdate) => boolean): Promise<void>;
}

export interface DemoOptions {
  /** HOME and working directory; fresh when absent. */
  readonly home?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The option to choose; `cancelled` answers so; `silence` never answers. Default `allow_once`. */
  readonly answer?: string;
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-demo-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function startDemo(options: DemoOptions = {}): Promise<DemoProcess> {
  const home = options.home ?? (await temporaryFolder());
  const child = spawn(process.execPath, [demoAgentEntry], {
    cwd: home,
    env: { PATH: process.env.PATH ?? "", HOME: home, ...options.environment },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);

  const updates: acp.SessionUpdate[] = [];
  const questions: acp.RequestPermissionRequest[] = [];
  const watchers = new Set<() => void>();
  const connection = acp
    .client({ name: "test" })
    .onNotification("session/update", ({ params }) => {
      updates.push(params.update);
      for (const watch of watchers) watch();
    })
    .onRequest("session/request_permission", ({ params }) => {
      questions.push(params);
      const answer = options.answer ?? "allow_once";
      if (answer === "silence") return new Promise<never>(() => {});
      if (answer === "cancelled") return { outcome: { outcome: "cancelled" } };
      return { outcome: { outcome: "selected", optionId: answer } };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  const { agent } = connection;
  const initialized = await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });

  return {
    child,
    agent,
    initialized,
    updates,
    questions,
    exited,
    stderr: () => stderr,
    newSession: async (mcpServers = []) =>
      (await agent.request("session/new", { cwd: home, mcpServers })).sessionId,
    prompt: (sessionId, text) =>
      agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] }),
    said: () =>
      updates
        .flatMap((update) =>
          update.sessionUpdate === "agent_message_chunk" && update.content.type === "text"
            ? [update.content.text]
            : [],
        )
        .join(""),
    seen: (wanted) =>
      new Promise((resolve) => {
        const watch = () => {
          if (!updates.some(wanted)) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        watch();
      }),
  };
}

/** Runs one script in a fresh agent and session. */
export async function play(script: string, options: DemoOptions = {}) {
  const demo = await startDemo(options);
  const response = await demo.prompt(await demo.newSession(), script);
  return { demo, response, tools: toolCalls(demo.updates) };
}

/** A tool call's last state, and the statuses it had. */
export interface SeenToolCall {
  readonly title: string;
  readonly kind: string | undefined;
  readonly rawInput: unknown;
  readonly statuses: readonly string[];
  readonly content: readonly acp.ToolCallContent[];
  readonly text: string;
  readonly rawOutput: unknown;
}

export function toolCalls(updates: readonly acp.SessionUpdate[]): SeenToolCall[] {
  const calls = new Map<string, SeenToolCall>();
  for (const update of updates) {
    if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") continue;
    const earlier = calls.get(update.toolCallId);
    const content = update.content ?? earlier?.content ?? [];
    calls.set(update.toolCallId, {
      title: update.title ?? earlier?.title ?? "",
      kind: update.kind ?? earlier?.kind,
      rawInput: update.rawInput ?? earlier?.rawInput,
      statuses: [...(earlier?.statuses ?? []), ...(update.status ? [update.status] : [])],
      content,
      text: content
        .flatMap((part) =>
          part.type === "content" && part.content.type === "text" ? [part.content.text] : [],
        )
        .join("\n"),
      rawOutput: update.rawOutput ?? earlier?.rawOutput,
    });
  }
  return [...calls.values()];
}
