import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { agentsFolder, benchKey } from "../../floors/agent-launch.js";
import type { RealAgent, Subject } from "../../floors/driver-messages.js";
import { type Program, startProgram } from "../../machine/program.js";
import { type AmbitServer, startAmbit } from "../server/ambit-server.js";
import { type AcpDirect, startAcpDirect } from "./acp-direct.js";
import { agentsInside, type DockerPlace } from "./agent-container.js";

const modelServerEntry = fileURLToPath(new URL("./main.js", import.meta.resolve("@ambit/model-server")));

/** One real agent on both sides: through Ambit, and driven by the ACP SDK directly; with the same scripted model. */
export interface AgentPair extends AsyncDisposable {
  readonly ambit: AmbitServer;
  readonly direct: AcpDirect;
  /** A request with this prompt, in which the agent may use all of its tools. */
  request(prompt: string, more?: object): string;
}

export interface AgentPairOptions {
  /** In its jail, without a network, with its model's key outside. Default: unconfined and connected to its model. */
  readonly confined?: boolean;
  /** Whether one agent waits, started ahead of its run. Only where `confined`. Default false. */
  readonly ahead?: boolean;
  /** Both sides in containers of one engine, Ambit's confined. Default: on this machine. */
  readonly docker?: DockerPlace;
}

const connections = {
  codex: { key: "OPENAI_API_KEY", path: "/v1", model: "scripted-model" },
  gemini: { key: "GEMINI_API_KEY", path: "", model: "gemini-2.5-flash" },
  pi: { key: "OPENAI_API_KEY", path: "/v1", model: "scripted-model" },
} as const;

const boundary = { network: "off", filesystem: "workspace", secrets: "hidden" };

export async function openPair(agent: RealAgent, options: AgentPairOptions = {}): Promise<AgentPair> {
  const { docker, confined = docker !== undefined } = options;
  const model = startProgram(modelServerEntry, { prints: true });
  const modelUrl = await firstLine(model);
  const container = docker === undefined ? undefined : { socket: docker.socket, id: docker.container };
  const subject: Subject = { agent, modelUrl, container };
  const direct = startAcpDirect(subject, docker?.folder);
  const ambit = await startAmbit({
    unconfined: confined ? "allow" : "prefer",
    harness: {
      folder: agentsFolder,
      ...(options.ahead === true ? { prewarm: { [agent]: [ahead(agent, modelUrl)] } } : {}),
    },
    plugins: [
      ...(confined ? ["@ambit/model-route"] : []),
      ...(options.ahead === true ? ["@ambit/metrics-prometheus"] : []),
      ...(docker === undefined ? [] : [agentsInside(docker)]),
    ],
    // A busy engine is slow with its first containers.
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
        ...(docker === undefined ? {} : { sandbox: "docker" }),
        ...more,
      }),
    [Symbol.asyncDispose]: async () => {
      await direct[Symbol.asyncDispose]();
      await ambit[Symbol.asyncDispose]();
      await model.stop();
    },
  };
}

/** As the requests below decide an agent's start. */
function ahead(agent: RealAgent, modelUrl: string): object {
  const { key, path, model } = connections[agent];
  return {
    agents: 1,
    request: {
      model,
      modelConnection: {
        endpoint: { baseUrl: `${modelUrl}${path}` },
        credentials: [{ binding: { kind: "environment", name: key } }],
      },
      permissions: { default: "allow" },
      sandboxPermission: boundary,
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
