import { isJsonObject, type JsonObject } from "@ambit/core/contract";
import type { OlderMcpServer, OlderRequest, OlderTool } from "./older-fields.js";

/** Refuses a field that is given together with its successor, or that has none. */
export type Refuse = (key: string, message: string) => void;

/** The remaining object in the current spelling, and the fields of earlier wires. */
export type Translate<Older> = (current: JsonObject, older: Older, refuse: Refuse) => JsonObject;

export const translateTool: Translate<OlderTool> = (tool, { needsApproval }) =>
  needsApproval === true ? { permission: "ask", ...tool } : tool;

export const translateMcpServer: Translate<OlderMcpServer> = (server, older, refuse) => {
  if (server.connection !== undefined) {
    refuse(
      "connection",
      "is given together with the older fields (transport, command, url, …): send one form of it",
    );
    return server;
  }
  const policy = policyOf(older);
  if (policy !== undefined && server.policy !== undefined) {
    refuse("policy", "is given together with the older fields (tools, permission): send one form of it");
  }
  return { ...server, connection: connectionOf(older, refuse), ...(policy === undefined ? {} : { policy }) };
};

function connectionOf({ transport, command, args, env, url }: OlderMcpServer, refuse: Refuse): JsonObject {
  const unread = (key: string, value: unknown, other: string) => {
    if (value === undefined) return;
    refuse(
      key,
      `is not read with the transport "${transport}": remove it, or set the transport to "${other}"`,
    );
  };
  if (transport === "stdio") {
    unread("url", url, "http");
    return present({ type: transport, command, args, env });
  }
  unread("command", command, "stdio");
  unread("args", args, "stdio");
  const credentials = env === undefined ? undefined : credentialsOf(env, headerCredential);
  return present({ type: transport, url, credentials });
}

function policyOf({ tools = [], permission }: OlderMcpServer): JsonObject | undefined {
  if (tools.length === 0 && permission === undefined) return undefined;
  return present({ tools: tools.length === 0 ? undefined : { mode: "include", names: tools }, permission });
}

export const translateRequest: Translate<OlderRequest> = (request, older, refuse) => {
  const translated: Record<string, unknown> = { ...request };
  const take = (key: string, from: string, value: unknown) => {
    if (value === undefined) return;
    if (request[key] === undefined) translated[key] = value;
    else refuse(from, `is the older form of \`${key}\`, which is given too: send one of them`);
  };
  take("permissions", "permissionPolicy", permissionsOf(older));
  take("modelConnection", firstGiven(older, connectionFields), modelConnectionOf(older));
  take("context", "trace", contextOf(older));
  take("telemetry", "trace", telemetryOf(older));
  take("onDisconnect", "detached", onDisconnectOf(older));
  if (older.backend === "pi") translated.harness ??= "pi";
  if (older.prompt !== undefined && older.prompt.trim() !== "") {
    const messages = request.messages ?? [];
    if (Array.isArray(messages)) translated.messages = withPrompt(messages, older.prompt);
  }
  return translated;
};

/** The prompt was the latest turn, which callers also sent as their last message. */
function withPrompt(messages: readonly unknown[], prompt: string): readonly unknown[] {
  const last = messages.at(-1);
  if (isJsonObject(last) && last.role === "user" && last.content === prompt) return messages;
  return [...messages, { role: "user", content: prompt }];
}

function permissionsOf({ permissionPolicy }: OlderRequest): JsonObject | undefined {
  if (permissionPolicy === undefined) return undefined;
  return { default: permissionPolicy === "auto" ? "allow" : "deny" };
}

function onDisconnectOf({ detached }: OlderRequest): string | undefined {
  if (detached === undefined) return undefined;
  return detached ? "continue" : "cancel";
}

const connectionFields = ["secrets", "provider", "deployment", "endpoint", "credentialMode"] as const;

function modelConnectionOf({ secrets = {}, provider, deployment, endpoint, credentialMode }: OlderRequest) {
  const credentials = credentialsOf(secrets, modelCredential);
  const connection = present({ provider, deployment, endpoint, credentialMode });
  if (credentials.length > 0) return { ...connection, credentials };
  return Object.keys(connection).length > 0 ? connection : undefined;
}

/** A program inside signs requests with them, so no proxy can add them later. */
const usedLocally = new Set([
  "AWS_ACCESS_KEY_ID",
  "AWS_SECRET_ACCESS_KEY",
  "AWS_SESSION_TOKEN",
  "GOOGLE_APPLICATION_CREDENTIALS",
]);

function modelCredential(name: string, value: unknown): JsonObject {
  const usage = usedLocally.has(name) ? "local_use" : "opaque_http";
  return { binding: { kind: "environment", name }, value, usage };
}

/** Over HTTP, the variables of an older server were the headers it is called with. */
function headerCredential(name: string, value: unknown): JsonObject {
  return { binding: { kind: "header", name }, value };
}

function credentialsOf(values: JsonObject, credential: (name: string, value: unknown) => JsonObject) {
  return Object.entries(values).map(([name, value]) => credential(name, value));
}

function contextOf({ trace: { traceparent, baggage } = {} }: OlderRequest): JsonObject | undefined {
  const propagation = present({ traceparent, baggage });
  return Object.keys(propagation).length > 0 ? { propagation } : undefined;
}

function telemetryOf({ trace }: OlderRequest): JsonObject | undefined {
  if (trace === undefined) return undefined;
  const { endpoint, authorization, captureContent } = trace;
  const otlp = present({ endpoint, headers: authorization === undefined ? undefined : { authorization } });
  const telemetry = present({
    capture: captureContent === undefined ? undefined : { content: { enabled: captureContent } },
    exporters: Object.keys(otlp).length > 0 ? { otlp } : undefined,
  });
  return Object.keys(telemetry).length > 0 ? telemetry : undefined;
}

function firstGiven<Key extends string>(
  older: { readonly [key in Key]?: unknown },
  keys: readonly Key[],
): string {
  return keys.find((key) => older[key] !== undefined) ?? "";
}

function present(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
