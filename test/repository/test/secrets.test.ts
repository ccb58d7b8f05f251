import { runRequestSchema, type SchemaField, schemaFields, secret } from "@ambit/core";
import { configurationSchema, environmentSchema } from "ambit";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { readManifests } from "../rules/tree.js";

/** Names of fields that hold a credential, or may. */
const suspicious =
  /token|key|secret|passw|authori[sz]ation|headers?$|^env$|environment|credential|login|signature|cookie|ur[il]$|endpoint$|^address$|^value$/i;

/** Fields with such a name that hold none, each with the reason. */
const harmless: Readonly<Record<string, string>> = {
  "messages[].content[].uri": "part of the conversation, which the agent is meant to read",
  "modelConnection.credentialMode": "a mode",
  "prewarm[][].request.modelConnection.credentialMode": "a mode",
  "modelConnection.environment": "variables that are no secret, by definition",
  "modelConnection.gatewayCredentials.header": "a header's name",
  "credentials[].as.header": "a header's name",
  "environment.credentials[].as.header": "a header's name",
  "environment.boundary.secrets": "a mode",
  "environment.env": "variables in plain text, by definition: what is secret belongs in credentials",
  "budget.tokens": "a number",
  "budget.session.tokens": "a number",
  "sandboxPermission.secrets": "a mode",
  "require.secrets": "a mode",
  "tokens[].token": "a hash of the token",
  "tokens[].require.secrets": "a mode",
  "contract.ignoredKeys": "names of fields",
  "interactions.keyFile": "a path",
  "interactions.onLostKey": "what happens without a key",
  "interactions.otherKeyFiles": "paths",
  "workspace.signingKeyFile": "a path",
  "server.address": "where replicas reach this one",
  "server.preview.url": "an origin without a ticket",
  "server.publicUrl": "the address of the server itself",
  "egress.proxy.url": "an address without credentials",
  "egress.proxy.credentialsFile": "a path",
  "egress.proxy.hosts[].url": "an address without credentials",
  "egress.proxy.hosts[].credentialsFile": "a path",
  AMBIT_INTERACTION_KEY_FILE: "a path",
  apiKeyVariable: "a variable's name",
  "canary.address": "a destination that a probe must not reach",
  "agents[].model.credential": "a variable's name",
  pullSecrets: "names of the cluster's objects",
  accessKeyId: "the public half of a key",
  endpoint: "where S3 is",
  kmsKeyId: "a key's name",
  "workspace.earlierKeyFiles": "paths",
  "tolerations[].key": "the name of a node's taint",
  "tolerations[].value": "the value of a node's taint",
};

/** Whether only its fields, or those of its entries, can hold something. */
function isContainer({ path }: SchemaField, fields: readonly SchemaField[]): boolean {
  return fields.some((other) => other.path.startsWith(`${path}.`) || other.path.startsWith(`${path}[].`));
}

function unmarked(fields: readonly SchemaField[]): string[] {
  return fields
    .filter((field) => field.kind === undefined && suspicious.test(field.name) && !isContainer(field, fields))
    .map(({ path }) => path);
}

const own = [runRequestSchema, configurationSchema, environmentSchema].map((schema) => schemaFields(schema));
const plugins = readManifests().filter(({ path }) => path.startsWith("plugins/"));
const ofPlugins = await Promise.all(
  plugins.map(async ({ text }) => {
    const { default: plugin } = await import(JSON.parse(text).name);
    return schemaFields(plugin.config);
  }),
);

describe("a field with the name of a credential", () => {
  it("is marked in its schema by `secret`, or harmless for a reason", () => {
    expect(new Set([...own, ...ofPlugins].flatMap(unmarked))).toEqual(new Set(Object.keys(harmless)));
  });

  it.each<[name: string, schema: z.ZodType]>([
    ["apiToken", z.string()],
    ["headers", z.record(z.string(), z.string()).optional()],
    ["env", z.record(z.string(), z.string()).default({})],
    ["url", z.url().nullable()],
    ["secrets", z.array(z.string()).meta({ description: "x" })],
  ])("is found where it isn't: %s", (name, schema) => {
    const nested = (field: z.ZodType) =>
      unmarked(schemaFields(z.object({ list: z.array(z.object({ [name]: field })) })));
    expect(nested(schema)).toEqual([`list[].${name}`]);
    expect(nested(secret(schema))).toEqual([]);
    expect(nested(secret(schema).meta({ description: "y" }).optional())).toEqual([]);
  });
});
