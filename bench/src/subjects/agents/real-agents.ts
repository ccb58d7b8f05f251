import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { agentsFolder, benchKey } from "../../floors/agent-launch.js";
import type { RealAgent } from "../../floors/driver-messages.js";
import { type Program, startProgram } from "../../machine/program.js";
import { type AmbitServer, startAmbit } from "../server/ambit-server.js";
import { type AcpDirect, startAcpDirect } from "./acp-direct.js";

const modelServerEntry = fileURLToPath(new URL("./main.js", import.meta.resolve("@ambit/model-server")));

/** One real agent on both sides: through Ambit, unconfined, and driven by the ACP SDK directly; with the same scripted model. */
export interface AgentPair extends AsyncDisposable {
  readonly ambit: AmbitServer;
  readonly direct: AcpDirect;
  /** A request with this prompt, in which the agent may use all of its tools. */
  request(prompt: string, more?: object): string;
}

const connections = {
  codex: { key: "OPENAI_API_KEY", path: "/v1", model: "scripted-model" },
  gemini: { key: "GEMINI_API_KEY", path: "", model: "gemini-2.5-flash" },
  pi: { key: "OPENAI_API_KEY", path: "/v1", model: "scripted-model" },
} as const;

export async function openPair(agent: RealAgent): Promise<AgentPair> {
  const model = startProgram(modelServerEntry, { prints: true });
  const modelUrl = await firstLine(model);
  const direct = startAcpDirect({ agent, modelUrl });
  const ambit = await startAmbit({ harness: { folder: agentsFolder } });
  const { key, path, model: name } = connections[agent];
  return {
    ambit,
    direct,
    request: (prompt, more = {}) =>
      JSON.stringify({
        harness: agent,
        model: name,
        modelConnection: {
          endpoint: { baseUrl: `${modelUrl}${path}` },
          credentials: [{ binding: { kind: "environment", name: key }, value: benchKey }],
        },
        permissions: { default: "allow" },
        messages: [{ role: "user", content: prompt }],
        ...more,
      }),
    [Symbol.asyncDispose]: async () => {
      await direct[Symbol.asyncDispose]();
      await ambit[Symbol.asyncDispose]();
      await model.stop();
    },
  };
}

async function firstLine({ child, lastWords }: Program): Promise<string> {
  if (child.stdout === null) throw new Error("the model server prints nowhere");
  const lines = createInterface({ input: child.stdout });
  const line = await new Promise<string>((resolve, reject) => {
    lines.once("line", resolve);
    lines.once("close", () => reject(new Error(`the model server left: ${lastWords()}`)));
  });
  lines.close();
  child.stdout.resume();
  return line;
}
