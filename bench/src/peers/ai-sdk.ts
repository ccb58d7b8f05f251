import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { demoAgentEntry } from "@ambit/agent-demo";
import { freePort } from "@ambit/backend-kit";
import { z } from "zod";
import { temporaryFolder } from "../machine/temporary-folder.js";
import { hostSandbox } from "./host-sandbox.js";
import { installPeer, type Peer } from "./install-peer.js";

const harnessAcp: Peer = {
  name: "@ai-sdk/harness-acp",
  version: "1.0.38",
  license: "Apache-2.0",
  entry: "dist/index.js",
};
/** With which it installs its bridge, once in a folder. */
const pnpm: Peer = { name: "pnpm", version: "10.34.9", license: "MIT", entry: "bin/pnpm.cjs" };

const isFunction = (value: unknown) => typeof value === "function";
interface Session {
  destroy(): Promise<void>;
}
interface Agent {
  createSession(): Promise<Session>;
  generate(turn: { readonly session: Session; readonly prompt: string }): Promise<{ readonly text: string }>;
}
const harnessModule = z.object({ createACP: z.custom<(settings: object) => object>(isFunction) });
const agentModule = z.object({ HarnessAgent: z.custom<new (settings: object) => Agent>(isFunction) });

/** Puts the demo agent where the harness looks for the program that its install command has installed. */
const install = `mkdir -p home/.local/bin && printf '#!/bin/sh\\nexec "%s" "%s"\\n' '${process.execPath}' '${demoAgentEntry}' > home/.local/bin/demo && chmod 755 home/.local/bin/demo`;

/** The AI SDK's harness in this process, which drives the demo agent over its bridge. It confines nothing here. */
export interface AiSdk extends AsyncDisposable {
  /** Starts a bridge, and with the first turn an agent and its conversation. */
  open(agent: string): Promise<void>;
  /** One turn of an open agent, to its response. */
  prompt(agent: string, script: string): Promise<void>;
  /** Ends an agent and its bridge. */
  close(agent: string): Promise<void>;
}

/** @throws Error when it can't be installed or doesn't start */
export async function openAiSdk(): Promise<AiSdk> {
  const entry = fileURLToPath(await installPeer(harnessAcp));
  const programs = join(dirname(fileURLToPath(await installPeer(pnpm))), "../../.bin");
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await temporaryFolder());
  const { createACP } = harnessModule.parse(await import(entry));
  const { HarnessAgent } = agentModule.parse(
    await import(join(dirname(entry), "../../harness/dist/agent/index.js")),
  );
  const harness = createACP({
    harnessId: "demo",
    source: { type: "install-command", command: install },
    executable: "demo",
    modelMapping: { type: "session-model", path: "model" },
  });
  const agent = new HarnessAgent({ harness, sandbox: hostSandbox(folder.path, programs, freePort) });
  const sessions = new Map<string, Session>();
  const sessionOf = (name: string) => {
    const session = sessions.get(name);
    if (session === undefined) throw new Error(`the AI SDK's harness has no session ${name}`);
    return session;
  };
  const close = async (name: string) => {
    const session = sessionOf(name);
    sessions.delete(name);
    await session.destroy();
  };
  opened.defer(async () => {
    for (const name of [...sessions.keys()]) await close(name);
  });
  const open = async (name: string) => {
    sessions.set(name, await agent.createSession());
  };
  const prompt = async (name: string, script: string) => {
    const { text } = await agent.generate({ session: sessionOf(name), prompt: script });
    if (text.trim() === "") throw new Error("the AI SDK's harness returned nothing");
  };
  // Its set-up isn't part of any turn.
  await open("first");
  await prompt("first", "say hello");
  await close("first");
  const owned = opened.move();
  return { open, prompt, close, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
