import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { agentsFolder, benchKey } from "../floors/agent-launch.js";
import type { RealAgent, Subject } from "../floors/driver-messages.js";
import { type Program, startProgram } from "../machine/program.js";
import { type AcpDirect, startAcpDirect } from "./acp-direct.js";
import { type AmbitServer, startAmbit } from "./ambit-server.js";

const modelServerEntry = fileURLToPath(new URL("./main.js", import.meta.resolve("@ambit/model-server")));

/** One real agent on both sides: through Ambit, and driven by the ACP SDK directly; with the same scripted model. */
export interface AgentPair extends AsyncDisposable {
  readonly ambit: AmbitServer;
  readonly direct: AcpDirect;
  /** A request with this prompt, in which the agent may use what it likes. */
  request(prompt: string, more?: object): string;
}

export interface PairOptions {
  /** In its jail, without a network, its model's key outside. Default: unconfined, straight to its model. */
  readonly confined?: boolean;
}

const connections = {
  codex: { key: "OPENAI_API_KEY", path: "/v1", model: "scripted-model" },
  gemini: { key: "GEMINI_API_KEY", path: "", model: "gemini-2.5-flash" },
  pi: { key: "OPENAI_API_KEY", path: "/v1", model: "scripted-model" },
} as const;

const boundary = { network: "off", filesystem: "workspace", secrets: "hidden" };

export async function openPair(agent: RealAgent, { confined = false }: PairOptions = {}): Promise<AgentPair> {
  const model = startProgram(modelServerEntry, { prints: true });
  const modelUrl = await firstLine(model);
  const subject: Subject = { agent, modelUrl };
  const direct = startAcpDirect(subject);
  const ambit = await startAmbit({
    unconfined: confined ? "allow" : "prefer",
    harness: { folder: agentsFolder },
    ...(confined ? { plugins: ["@ambit/model-route"] } : {}),
  });
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
        ...(confined ? { sandboxPermission: boundary } : {}),
        ...more,
      }),
    [Symbol.asyncDispose]: async () => {
      await direct[Symbol.asyncDispose]();
      await ambit[Symbol.asyncDispose]();
      await model.stop();
    },
  };
}

async function firstLine({ child }: Program): Promise<string> {
  if (child.stdout === null) throw new Error("the model server prints nowhere");
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, "line");
  lines.close();
  child.stdout.resume();
  return String(line);
}
