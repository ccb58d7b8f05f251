import {
  type Issue,
  isJsonObject,
  type JsonObject,
  type KnownShape,
  knownShapeOf,
  limits,
  modelConnectionSchema,
  pathText,
  permissionSchema,
  readableIssues,
  requestSchemaWith,
} from "@ambit/core/contract";
import type { Translation } from "@ambit/core/plugin";
import { z } from "zod";
import { fields } from "./fields.js";

/**
 * Translates snake_case names and fields of earlier wires. Reads only the levels of the contract, never inside a caller's
 * own values. What needs no change isn't copied, so that a thousand tools cost one traversal and nothing else. Pure.
 */
export function translate(request: JsonObject): Translation {
  const issues: Issue[] = [];
  const current = walk(request, requestReader, [], issues);
  return { request: isJsonObject(current) ? withCurrentValues(current, issues) : request, issues };
}

function walk(
  value: unknown,
  reader: LevelReader | undefined,
  path: PropertyKey[],
  issues: Issue[],
): unknown {
  if (reader?.kind === "list")
    return Array.isArray(value) && value.length <= reader.max
      ? walkList(value, reader.element, path, issues)
      : value;
  return reader !== undefined && isJsonObject(value) ? walkObject(value, reader, path, issues) : value;
}

function walkList(
  list: readonly unknown[],
  element: LevelReader,
  path: PropertyKey[],
  issues: Issue[],
): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, value] of list.entries()) {
    path.push(index);
    const current = walk(value, element, path, issues);
    path.pop();
    if (current === value) continue;
    copy ??= [...list];
    copy[index] = current;
  }
  return copy ?? list;
}

function walkObject(
  object: JsonObject,
  { keys, olderForm }: ObjectReader,
  path: PropertyKey[],
  issues: Issue[],
): JsonObject {
  const names = Object.keys(object);
  // Refused for its size.
  if (names.length > limits.entries) return object;
  let isChanged = false;
  const current: (readonly [string, unknown])[] = [];
  const older: (readonly [string, unknown])[] = [];
  for (const written of names) {
    const value = object[written];
    const key = keys.get(written);
    const { name, isOlder } = key ?? { name: written, isOlder: false };
    path.push(written);
    // An explicit null means absent, in this wire too.
    const translated = value === null ? undefined : walk(value, key?.below, path, issues);
    path.pop();
    if (translated !== value || name !== written || isOlder) isChanged = true;
    if (translated === undefined) continue;
    if (name !== written && isGiven(object, name)) {
      const message = `is given twice: \`${name}\` is the same field; send one of them`;
      issues.push({ path: pathText([...path, written]), message });
    } else (isOlder ? older : current).push([name, translated]);
  }
  if (!isChanged) return object;
  // A key `__proto__` stays a key, to be refused as unknown; assigned, it would vanish into the prototype.
  const currentFields = Object.fromEntries(current);
  if (older.length === 0 || olderForm === undefined) return currentFields;
  return olderForm.translate(currentFields, Object.fromEntries(older), path, issues);
}

function isGiven(object: JsonObject, name: string): boolean {
  return Object.hasOwn(object, name) && object[name] !== null;
}

/** Its names of harnesses. */
export const harnesses: Readonly<Record<string, string>> = { pi_core: "pi", pi_agenta: "pi" };

/** Values, not names, that earlier wires and other SDKs spell otherwise. */
function withCurrentValues(body: JsonObject, issues: Issue[]): JsonObject {
  issues.push(...namedSkills(body.skills));
  const harness =
    typeof body.harness === "string" && Object.hasOwn(harnesses, body.harness)
      ? harnesses[body.harness]
      : undefined;
  const messages = withKnownRoles(body.messages);
  let current = body;
  if (harness !== undefined) current = { ...current, harness };
  if (messages !== body.messages) current = { ...current, messages };
  if (isOwnedByCaller(body)) current = { ...current, onDisconnect: "cancel" };
  if (!isUnset(body.toolCallback)) return current;
  const { toolCallback: _unset, ...translated } = current;
  return translated;
}

/** A longer list is refused for its length. */
function namedSkills(skills: unknown): Issue[] {
  if (!Array.isArray(skills) || skills.length > limits.skills) return [];
  const message = "names a skill without its content: send an object with name, description and body";
  return skills.flatMap((skill: unknown, index) =>
    typeof skill === "string" ? [{ path: `skills[${index}]`, message }] : [],
  );
}

/**
 * A platform that sends its own instructions says `detached` where a run outlives its caller; one before it let every
 * run of a session continue. Nothing else tells the two apart.
 */
function isOwnedByCaller({ platformInstructions, onDisconnect }: JsonObject): boolean {
  return platformInstructions !== undefined && onDisconnect === undefined;
}

/** A platform without an endpoint still sends the object. A tool that needs one is refused by its executor. */
function isUnset(toolCallback: unknown): boolean {
  return (
    isJsonObject(toolCallback) &&
    toolCallback.endpoint === undefined &&
    Object.keys(toolCallback).every((key) => key === "authorization")
  );
}

/** `developer` is what some SDKs call `system`. */
function withKnownRoles(messages: unknown): unknown {
  if (!Array.isArray(messages) || !messages.some(isOfDeveloper)) return messages;
  return messages.map((message: unknown) =>
    isOfDeveloper(message) ? { ...message, role: "system" } : message,
  );
}

function isOfDeveloper(message: unknown): message is JsonObject {
  return isJsonObject(message) && message.role === "developer";
}

/** Refuses a field that is given together with its successor, or that has none. */
type Refuse = (key: string, message: string) => void;

/** The remaining object in the current spelling, and the fields of earlier wires. */
type Translate<Older> = (current: JsonObject, older: Older, refuse: Refuse) => JsonObject;

const translateTool: Translate<OlderTool> = (tool, { needsApproval }) =>
  needsApproval === true ? { permission: "ask", ...tool } : tool;

const translateMcpServer: Translate<OlderMcpServer> = (server, older, refuse) => {
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

const translateRequest: Translate<OlderRequest> = (request, older, refuse) => {
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

/** The fields of earlier wires, by level. Values that only move are validated in their new place. */
const olderRequestSchema = z.strictObject({
  /** One string in place of messages. */
  prompt: z.string().optional(),
  permissionPolicy: z.enum(["auto", "deny"]).optional(),
  /** Credentials by the name of their variable. */
  secrets: z.record(z.string(), z.unknown()).optional(),
  provider: z.unknown().optional(),
  deployment: z.unknown().optional(),
  endpoint: modelConnectionSchema.shape.endpoint,
  credentialMode: z.unknown().optional(),
  trace: z
    .strictObject({
      traceparent: z.unknown().optional(),
      baggage: z.unknown().optional(),
      endpoint: z.unknown().optional(),
      authorization: z.unknown().optional(),
      captureContent: z.unknown().optional(),
    })
    .optional(),
  backend: z.enum(["rivet", "pi"]).optional(),
  /** Whether the run belongs to its session, and not to the connection that began it. */
  detached: z.boolean().optional(),
});
type OlderRequest = z.infer<typeof olderRequestSchema>;

const olderToolSchema = z.strictObject({ needsApproval: z.boolean().optional() });
type OlderTool = z.infer<typeof olderToolSchema>;

const olderMcpServerSchema = z.strictObject({
  transport: z.enum(["stdio", "http"]).default("stdio"),
  command: z.unknown().optional(),
  args: z.unknown().optional(),
  env: z.record(z.string(), z.unknown()).optional(),
  url: z.unknown().optional(),
  /** The server's tools that may be used; empty means all. */
  tools: z.array(z.unknown()).optional(),
  permission: permissionSchema.optional(),
});
type OlderMcpServer = z.infer<typeof olderMcpServerSchema>;

/** A level's fields as earlier wires had them. */
interface OlderForm {
  readonly keys: ReadonlyMap<string, KnownShape | undefined>;
  translate(
    current: JsonObject,
    older: JsonObject,
    path: readonly PropertyKey[],
    issues: Issue[],
  ): JsonObject;
}

function olderForm<Schema extends z.ZodObject>(
  schema: Schema,
  translate: Translate<z.output<Schema>>,
): OlderForm {
  const level = knownShapeOf(schema);
  return {
    keys: level?.kind === "object" ? level.keys : new Map(),
    translate(current, older, path, issues) {
      const parsed = schema.safeParse(older);
      if (!parsed.success) {
        issues.push(...readableIssues(parsed.error.issues, { value: older, level, path }));
        return current;
      }
      return translate(current, parsed.data, (key, message) =>
        issues.push({ path: pathText([...path, key]), message }),
      );
    },
  };
}

/** The older forms by the path of their level, without indices. */
const olderForms: ReadonlyMap<string, OlderForm> = new Map([
  ["", olderForm(olderRequestSchema, translateRequest)],
  ["customTools[]", olderForm(olderToolSchema, translateTool)],
  ["mcpServers[]", olderForm(olderMcpServerSchema, translateMcpServer)],
]);

export const olderKeys: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  [...olderForms].map(([place, { keys }]) => [place, [...keys.keys()]]),
);

/** How to read a level, in any spelling. */
type LevelReader = ObjectReader | ListReader;

interface ObjectReader {
  readonly kind: "object";
  /** The keys by each of their accepted spellings. */
  readonly keys: ReadonlyMap<string, Key>;
  readonly olderForm: OlderForm | undefined;
}

interface ListReader {
  readonly kind: "list";
  readonly element: LevelReader;
  /** A longer list is refused: it isn't translated. */
  readonly max: number;
}

interface Key {
  /** The key in the contract's spelling. */
  readonly name: string;
  readonly below: LevelReader | undefined;
  readonly isOlder: boolean;
}

function readerOf(level: KnownShape | undefined, path: string): LevelReader | undefined {
  if (level === undefined || level.kind === "map") return undefined;
  if (level.kind === "list") {
    const element = readerOf(level.element, `${path}[]`);
    return element === undefined ? undefined : { ...level, element };
  }
  const olderForm = olderForms.get(path);
  const keys = new Map<string, Key>();
  const add = (name: string, level: KnownShape | undefined, isOlder: boolean) => {
    const key = { name, below: readerOf(level, path === "" ? name : `${path}.${name}`), isOlder };
    keys.set(name, key).set(snakeCase(name), key);
  };
  for (const [name, below] of olderForm?.keys ?? []) add(name, below, true);
  for (const [name, below] of level.keys) add(name, below, false);
  return { kind: "object", keys, olderForm };
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const requestReader = readerOf(knownShapeOf(requestSchemaWith([fields])), "");
