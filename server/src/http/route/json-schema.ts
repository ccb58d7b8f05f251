import {
  agentEventSchema,
  contentBlockSchema,
  failedResultSchema,
  failureSchema,
  gapSchema,
  interactionAnswerSchema,
  issueSchema,
  type JsonObject,
  mcpServerSchema,
  messageSchema,
  planResponseSchema,
  type RunRequestSchema,
  receiptSchema,
  runResultSchema,
  sandboxPermissionSchema,
  snapshotInfoSchema,
  toolSpecSchema,
  warningSchema,
} from "@ambit/core/contract";
import {
  acceptedResponseSchema,
  deliveriesResponseSchema,
  interactionsResponseSchema,
  runInfoSchema,
  runRequestResponseSchema,
  runsResponseSchema,
  sessionsResponseSchema,
  storedDeliverySchema,
  webhookMessageSchema,
} from "@ambit/durable";
import { z } from "zod";
import {
  cancelTurnRequestSchema,
  cancelTurnResponseSchema,
  endedResponseSchema,
  forwardedResponseSchema,
  healthResponseSchema,
  hostResponseSchema,
  killRequestSchema,
  outputFilesResponseSchema,
  pluginsResponseSchema,
  quotasResponseSchema,
  readyResponseSchema,
  responseRecordSchema,
  runMessageSchema,
  sessionFilesResponseSchema,
  snapshotsResponseSchema,
  subscriptionStatusSchema,
  terminalInputSchema,
  terminalRecordSchema,
  terminalRequestSchema,
  tokenRequestSchema,
  tokenResponseSchema,
  usageResponseSchema,
} from "../route-schemas.js";

/** What callers send: fields with a default are optional. */
const sentSchemas = (request: RunRequestSchema) => ({
  RunRequest: request,
  KillRequest: killRequestSchema,
  RunMessage: runMessageSchema,
  TokenRequest: tokenRequestSchema,
  TerminalRequest: terminalRequestSchema,
  TerminalInput: terminalInputSchema,
  CancelTurnRequest: cancelTurnRequestSchema,
  InteractionAnswer: interactionAnswerSchema,
  Message: request.shape.messages.unwrap().element,
  ContentBlock: contentBlockSchema,
  ToolSpec: toolSpecSchema,
  McpServer: mcpServerSchema,
  ModelConnection: request.shape.modelConnection.unwrap(),
  SandboxPermission: sandboxPermissionSchema,
});

/** What callers get. */
const returned = {
  RunResult: runResultSchema,
  FailedResult: failedResultSchema,
  StreamRecord: responseRecordSchema,
  AgentEvent: agentEventSchema,
  Receipt: receiptSchema,
  Failure: failureSchema,
  Gap: gapSchema,
  Issue: issueSchema,
  Warning: warningSchema,
  PlanResponse: planResponseSchema,
  OutputFilesResponse: outputFilesResponseSchema,
  PluginsResponse: pluginsResponseSchema,
  HostResponse: hostResponseSchema,
  HealthResponse: healthResponseSchema,
  ReadyResponse: readyResponseSchema,
  SubscriptionStatus: subscriptionStatusSchema,
  SessionFilesResponse: sessionFilesResponseSchema,
  TerminalRecord: terminalRecordSchema,
  SnapshotInfo: snapshotInfoSchema,
  SnapshotsResponse: snapshotsResponseSchema,
  EndedResponse: endedResponseSchema,
  TokenResponse: tokenResponseSchema,
  CancelTurnResponse: cancelTurnResponseSchema,
  ForwardedResponse: forwardedResponseSchema,
  AcceptedResponse: acceptedResponseSchema,
  RunInfo: runInfoSchema,
  RunRequestResponse: runRequestResponseSchema,
  RunsResponse: runsResponseSchema,
  SessionsResponse: sessionsResponseSchema,
  InteractionsResponse: interactionsResponseSchema,
  DeliveriesResponse: deliveriesResponseSchema,
  UsageResponse: usageResponseSchema,
  QuotasResponse: quotasResponseSchema,
  StoredDelivery: storedDeliverySchema,
  WebhookMessage: webhookMessageSchema,
  ResultMessage: messageSchema,
  ResultContentBlock: contentBlockSchema,
};

export type SchemaName = keyof ReturnType<typeof sentSchemas> | keyof typeof returned;

/**
 * JSON Schemas (2020-12) of everything on the wire, by name; they refer to each other below `base`.
 *
 * @param request the schema of requests, with the fields of the loaded dialects.
 */
export function wireSchemas(base: string, request: RunRequestSchema): Readonly<Record<string, JsonObject>> {
  return { ...converted(sentSchemas(request), "input", base), ...converted(returned, "output", base) };
}

function converted(
  schemas: Readonly<Record<string, z.core.$ZodType>>,
  io: "input" | "output",
  base: string,
): Readonly<Record<string, JsonObject>> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(schemas)) registry.add(schema, { id });
  const all = z.toJSONSchema(registry, {
    io,
    unrepresentable: "any",
    uri: (id) => `${base}${id}`,
    override: ({ jsonSchema }) => {
      // Only for the table of fields.
      delete jsonSchema.effect;
      // Client generators take a field with a default as always present, and would require it.
      if (io === "input") delete jsonSchema.default;
      // A later version may add fields to what it returns; a request's unknown fields are refused.
      else if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  }).schemas;
  return Object.fromEntries(
    Object.keys(schemas).map((name) => {
      const document = all[name];
      if (document === undefined) throw new TypeError(`${name} has no JSON Schema`);
      // The OpenAPI document has its own dialect and address.
      const { $schema, $id, ...schema } = document;
      return [name, titled(name, schema)];
    }),
  );
}

/** What ends the titles of a union's alternatives. */
const alternatives: Readonly<Partial<Record<string, string>>> = {
  AgentEvent: "Event",
  StreamRecord: "Record",
  TerminalRecord: "TerminalRecord",
  WebhookMessage: "Message",
};

/** With titles, by which generators name what they make: of an alternative after the constant that tells it from the others. */
function titled(name: string, schema: JsonObject): JsonObject {
  const suffix = alternatives[name];
  if (suffix === undefined) return { title: name, ...schema };
  const { oneOf } = z
    .object({ oneOf: z.array(z.looseObject({ properties: z.looseObject({}) })) })
    .parse(schema);
  const title = ({ properties: { type, kind } }: (typeof oneOf)[number]) =>
    constantSchema
      .parse(type ?? kind)
      .const.split(/[._]/)
      .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
      .join("");
  return { title: name, ...schema, oneOf: oneOf.map((one) => ({ title: title(one) + suffix, ...one })) };
}

const constantSchema = z.object({ const: z.string() });
