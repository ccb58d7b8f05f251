import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { agenta } from "@ambit/compat-agenta";
import { requestSchemaWith } from "@ambit/core/contract";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { wireSchemas } from "../../src/http/route/json-schema.js";
import { openApiDocument } from "../../src/http/routes.js";

/** The examples of the wire that every part of this repository is tested with. */
const golden = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../../test/golden/${name}.json`, import.meta.url), "utf8"));

/** As the default plugins extend it. */
const request = requestSchemaWith([agenta.fields ?? {}]);
const document = JSON.parse(JSON.stringify(openApiDocument("1.2.3", request)));

test("the document is OpenAPI 3.1", async () => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(document))).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
  expect(document.info.version).toBe("1.2.3");
});

test("the validator rejects an invalid document", async () => {
  const broken = structuredClone(document);
  delete broken.paths["/run"].post.responses[200].description;
  expect(await new Validator().validate(broken)).toMatchObject({ valid: false });
});

test("what generators and linters read is there: tags, descriptions, titles, bounds and patterns", () => {
  const tags = new Set(document.tags.map(({ name }: { name: string }) => name));
  const operations: Record<string, { tags: string[]; description: string }>[] = Object.values(document.paths);
  for (const operation of operations.flatMap((ofPath) => Object.values(ofPath))) {
    expect(operation).toMatchObject({ description: expect.stringMatching(/^[A-Z][\s\S]*\.$/) });
    expect(operation.tags.filter((tag) => tags.has(tag))).toHaveLength(1);
  }
  const parametersOf = (path: string) => document.paths[path].get.parameters;
  expect(parametersOf("/runs/{runId}/events")).toMatchObject([
    { name: "runId", schema: { pattern: expect.stringMatching(/^\^/) } },
    {},
    { name: "after", schema: { minimum: 0, maximum: 999_999_999_999_999 } },
    {},
  ]);
  const { AgentEvent, RunRequest } = document.components.schemas;
  expect(RunRequest.title).toBe("RunRequest");
  const titles: string[] = AgentEvent.oneOf.map(({ title }: { title: string }) => title);
  expect(titles).toContain("ToolCallEvent");
  expect(new Set(titles).size).toBe(titles.length);
});

test("every reference resolves", () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)];
  expect(references.length).toBeGreaterThan(20);
  for (const [, name = ""] of references) expect(document.components.schemas).toHaveProperty(name);
});

test.each([
  ["post", "/run", [200, 202, 400, 401, 402, 403, 408, 409, 413, 422, 429, 499, 500, 502, 503, 504]],
  ["post", "/stream", [200, 202, 400, 401, 402, 403, 408, 409, 413, 422, 429, 499, 500, 502, 503, 504]],
  ["post", "/plan", [200, 400, 401, 403, 408, 413, 422, 429, 500, 503]],
  ["post", "/kill", [200, 400, 401, 403, 408, 413, 429, 500, 503]],
  ["post", "/runs/{runId}/cancel", [200, 400, 401, 403, 404, 429, 500, 503]],
  ["get", "/runs", [200, 400, 401, 403, 404, 429, 500, 503]],
  ["get", "/runs/{runId}/events", [200, 204, 400, 401, 403, 404, 429, 500, 503]],
  ["get", "/usage", [200, 400, 401, 403, 429, 500, 503]],
  ["get", "/quotas", [200, 400, 401, 403, 429, 500, 503]],
  ["get", "/sessions", [200, 400, 401, 403, 404, 429, 500, 503]],
  ["delete", "/sessions/{sessionId}", [200, 400, 401, 403, 404, 409, 429, 500, 503]],
  ["get", "/plugins", [200, 401, 403, 429, 500]],
  ["get", "/metrics", [200, 401, 403, 404, 429, 500]],
  ["get", "/subscription-status", [200, 401, 403, 429, 500]],
  ["get", "/health", [200, 403]],
  ["get", "/ready", [200, 403, 503]],
  ["get", "/openapi.json", [200, 403]],
  [
    "post",
    "/runs/{runId}/interactions/{interactionId}",
    [200, 400, 401, 403, 404, 408, 410, 413, 429, 500, 503],
  ],
] as const)("%s %s answers as documented", (method, path, statuses) => {
  expect(Object.keys(document.paths[path][method].responses).map(Number)).toEqual(statuses);
});

test("each 429 and 503 has Retry-After", () => {
  const later: { readonly headers?: object }[] = Object.values(document.paths)
    .flatMap((path) => Object.values(path as Record<string, { readonly responses: Record<string, object> }>))
    .flatMap(({ responses }) => [responses[429] ?? [], responses[503] ?? []].flat());
  expect(later.length).toBeGreaterThan(20);
  for (const { headers } of later) expect(headers).toHaveProperty("retry-after");
});

test("Python reads every pattern", (context) => {
  const patterns: string[] = [];
  JSON.stringify(document, (key, value: unknown) => {
    if (key === "pattern" && typeof value === "string") patterns.push(value);
    return value;
  });
  expect(patterns.length).toBeGreaterThan(20);
  const read = (given: readonly string[]) =>
    spawnSync("python3", ["-c", "import json, re, sys\nfor one in json.load(sys.stdin): re.compile(one)"], {
      input: JSON.stringify(given),
      encoding: "utf8",
    });
  if (read([]).error !== undefined) context.skip("host: no python3");
  expect(read(["\\p{Cc}"]).stderr).toContain("bad escape");
  expect(read(patterns)).toMatchObject({ status: 0, stderr: "" });
});

test.each([
  ["/run", ["application/json"]],
  ["/stream", ["application/x-ndjson", "text/event-stream"]],
])("%s answers in a form that no caller has to tell apart", (path, forms) => {
  expect(Object.keys(document.paths[path].post.responses[200].content)).toEqual(forms);
});

test("a request has no default in its schema, which would make its field required; a response has no input schema", () => {
  const { schemas } = document.components;
  expect(schemas.RunRequest.required).toBeUndefined();
  expect(schemas.Message.required).toEqual(["role"]);
  expect(schemas.ResultMessage.required).toEqual(["role", "content"]);
  expect(schemas.RunRequest.properties.permissions.properties.default.enum).toContain("allow_reads");
  for (const name of [
    "RunRequest",
    "Message",
    "ToolSpec",
    "McpServer",
    "ModelConnection",
    "SandboxPermission",
  ])
    expect(JSON.stringify(schemas[name]), name).not.toMatch(/"default":(?!\{"description")/);
});

test("fields are described", () => {
  const { properties } = document.components.schemas.RunRequest;
  expect(properties.harness.description).toMatch(/agent to run/);
  expect(document.components.schemas.ToolSpec.properties.call.properties.path.description).toMatch(/origin/);
});

/** Schemas of what callers send. */
const isSent: ReadonlySet<string> = new Set([
  "RunRequest",
  "KillRequest",
  "TokenRequest",
  "TerminalRequest",
  "TerminalInput",
  "RunMessage",
  "CancelTurnRequest",
  "InteractionAnswer",
  "Message",
  "ContentBlock",
  "ToolSpec",
  "McpServer",
  "ModelConnection",
  "SandboxPermission",
]);

describe("the server's responses match the schemas", () => {
  const base = "https://ambit.invalid/";
  const ajv = addFormats.default(new Ajv2020({ strict: false }));
  for (const [name, schema] of Object.entries(wireSchemas(base, request)))
    ajv.addSchema(schema, `${base}${name}`);

  test.each([
    ["RunRequest", "request-full"],
    ["RunResult", "result-full"],
    ["RunResult", "result-paused"],
    ["PlanResponse", "plan-accepted"],
    ["PluginsResponse", "plugins"],
    ["HealthResponse", "health"],
    ["KillRequest", "kill"],
    ["EndedResponse", "ended"],
  ])("%s: %s, where only a request's further fields are refused", (name, file) => {
    const validate = ajv.getSchema(`${base}${name}`);
    const value = golden(file) as object;
    expect(validate?.(value), JSON.stringify(validate?.errors)).toBe(true);
    expect(validate?.({ ...value, later: 1 })).toBe(!name.endsWith("Request"));
  });

  test("a later version's fields fit at any depth of a response", () => {
    const closed: string[] = [];
    const schemas = wireSchemas(base, request);
    const names = Object.keys(schemas).filter((name) => !isSent.has(name));
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) {
      if (JSON.stringify(schemas[name]).includes('"additionalProperties":false')) closed.push(name);
    }
    expect(closed).toEqual([]);
    for (const name of isSent)
      if (name !== "CancelTurnRequest")
        expect(JSON.stringify(schemas[name]), name).toContain('"additionalProperties":false');
  });

  test.each([
    "request-minimal",
    "request-continuation",
    "request-older-spellings.current",
    "reference-request-head-direct-call",
  ])("RunRequest: %s", (file) => {
    const validate = ajv.getSchema(`${base}RunRequest`);
    expect(validate?.(golden(file)), JSON.stringify(validate?.errors)).toBe(true);
  });

  test.each(["request-older-spellings", "reference-request-qa-network"])(
    "RunRequest: %s isn't valid: older spellings are not part of the schema",
    (file) => {
      expect(ajv.getSchema(`${base}RunRequest`)?.(golden(file))).toBe(false);
    },
  );

  test.each(golden("failures") as { failure: { code: string } }[])(
    "FailedResult: $failure.code",
    (failure) => {
      const validate = ajv.getSchema(`${base}FailedResult`);
      expect(validate?.(failure), JSON.stringify(validate?.errors)).toBe(true);
      expect(validate?.({ ...failure, ok: true })).toBe(false);
    },
  );
});
