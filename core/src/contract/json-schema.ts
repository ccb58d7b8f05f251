import { z } from "zod";
import {
  answeredRecordSchema,
  endedAnswerSchema,
  failedResultSchema,
  forwardedAnswerSchema,
  healthAnswerSchema,
  killRequestSchema,
  planAnswerSchema,
  pluginsAnswerSchema,
  subscriptionStatusSchema,
} from "./answers.js";
import { agentEventSchema } from "./events.js";
import { failureSchema, gapSchema, issueSchema } from "./failure.js";
import { fieldMeanings } from "./fields.js";
import { interactionAnswerSchema } from "./interactions.js";
import { isJsonObject, type JsonObject } from "./json.js";
import { mcpServerSchema } from "./mcp-server.js";
import { contentBlockSchema, messageSchema } from "./message.js";
import { modelConnectionSchema } from "./model-connection.js";
import { receiptSchema } from "./receipt.js";
import { runRequestSchema } from "./request.js";
import { runResultSchema } from "./result.js";
import { sandboxPermissionSchema } from "./sandbox-permission.js";
import { toolSpecSchema } from "./tool.js";
import { warningSchema } from "./warning.js";

/** What callers send: fields with a default may be left out. */
const sent = {
  RunRequest: runRequestSchema,
  KillRequest: killRequestSchema,
  InteractionAnswer: interactionAnswerSchema,
  Message: messageSchema,
  ContentBlock: contentBlockSchema,
  ToolSpec: toolSpecSchema,
  McpServer: mcpServerSchema,
  ModelConnection: modelConnectionSchema,
  SandboxPermission: sandboxPermissionSchema,
};

/** What they get back. */
const returned = {
  RunResult: runResultSchema,
  FailedResult: failedResultSchema,
  StreamRecord: answeredRecordSchema,
  AgentEvent: agentEventSchema,
  Receipt: receiptSchema,
  Failure: failureSchema,
  Gap: gapSchema,
  Issue: issueSchema,
  Warning: warningSchema,
  PlanAnswer: planAnswerSchema,
  PluginsAnswer: pluginsAnswerSchema,
  HealthAnswer: healthAnswerSchema,
  SubscriptionStatus: subscriptionStatusSchema,
  EndedAnswer: endedAnswerSchema,
  ForwardedAnswer: forwardedAnswerSchema,
  ResultMessage: messageSchema,
  ResultContentBlock: contentBlockSchema,
};

/** Of the schemas that callers send. */
export const sentNames: readonly string[] = Object.keys(sent);

export type SchemaName = keyof typeof sent | keyof typeof returned;

/** JSON Schemas (2020-12) of all that goes over the wire, by name; they refer to each other below `base`. */
export function wireSchemas(base: string): Readonly<Record<SchemaName, JsonObject>> {
  const schemas = { ...converted(sent, "input", base), ...converted(returned, "output", base) };
  describe(schemas.RunRequest, "", schemas, base);
  return schemas;
}

/** One self-contained JSON Schema (2020-12) of the body of `POST /run`, in the current spelling. */
export function requestJsonSchema(): JsonObject {
  const { RunRequest, ...others } = wireSchemas("#/$defs/");
  const names = Object.keys(sent).filter(
    (name) => !["RunRequest", "KillRequest", "InteractionAnswer"].includes(name),
  );
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "RunRequest",
    ...RunRequest,
    $defs: Object.fromEntries(Object.entries(others).filter(([name]) => names.includes(name))),
  };
}

function converted<Name extends string>(
  schemas: Readonly<Record<Name, z.core.$ZodType>>,
  io: "input" | "output",
  base: string,
): Record<Name, JsonObject> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries<z.core.$ZodType>(schemas)) registry.add(schema, { id });
  const all = z.toJSONSchema(registry, { io, unrepresentable: "any", uri: (id) => `${base}${id}` }).schemas;
  const bare = (name: string): JsonObject => {
    // Each stands inside a document that has its own dialect and address.
    const { $schema, $id, ...schema } = all[name] ?? {};
    return schema;
  };
  return Object.fromEntries(Object.keys(schemas).map((name) => [name, bare(name)])) as Record<
    Name,
    JsonObject
  >;
}

/** Puts each field's sentence from the table beside its schema. */
function describe(
  schema: JsonObject,
  path: string,
  schemas: Readonly<Record<string, JsonObject>>,
  base: string,
): void {
  const target = typeof schema.$ref === "string" ? schemas[schema.$ref.slice(base.length)] : schema;
  if (target === undefined) return;
  const variants = [target.anyOf, target.oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  for (const variant of variants) describe(variant, path, schemas, base);
  if (isJsonObject(target.items)) describe(target.items, `${path}[]`, schemas, base);
  if (!isJsonObject(target.properties)) return;
  for (const [key, property] of Object.entries(target.properties)) {
    if (!isJsonObject(property)) continue;
    const below = path === "" ? key : `${path}.${key}`;
    const meaning = fieldMeanings[below];
    if (meaning !== undefined) Object.assign(property, { description: meaning.does });
    describe(property, below, schemas, base);
  }
}
