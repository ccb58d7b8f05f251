import type { Message } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import { contractSettingsSchema, parseRunRequest } from "../../src/parse/parse.js";

function requestOf(body: unknown) {
  const parsed = parseRunRequest(body);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.request;
}

function issuesOf(body: unknown, ignoredKeys: readonly string[] = []) {
  const parsed = parseRunRequest(body, { ignoredKeys: [...ignoredKeys] });
  return parsed.ok ? [] : parsed.issues;
}

const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
const png = "iVBORw0KGgo=";

describe("requests of other SDKs are read by their meaning", () => {
  test.each([[{ role: "assistant", content: null }], [{ role: "assistant" }]])(
    "%j is an empty message",
    (message) => {
      expect(requestOf({ messages: [message] }).messages).toEqual([{ role: "assistant", content: "" }]);
    },
  );

  test("a render hint of an unknown kind is passed on", () => {
    const render = { kind: "hologram", depth: 3 };
    expect(requestOf({ customTools: [{ name: "a", callRef: "a", render }] }).customTools[0]?.render).toEqual(
      render,
    );
  });

  test.each([
    ["role", { messages: [{ role: "root", content: "x" }] }, "messages[0].role"],
    ["endpoint", { toolCallback: { endpiont: "https://a.example" } }, "toolCallback.endpiont"],
    ["endpoint that is no text", { toolCallback: { endpoint: 7 } }, "toolCallback.endpoint"],
    ["content", { messages: [{ role: "user", contents: "x" }] }, "messages[0].contents"],
    ["boundary", { sandboxPermision: { network: "off" } }, "sandboxPermision"],
    ["kind of a hint", { customTools: [{ name: "a", render: { kind: "" } }] }, "customTools[0].render.kind"],
  ])("but a wrong %s is refused", (_what, body, path) => {
    expect(issuesOf(body).map((issue) => issue.path)).toContain(path);
  });
});

describe("an inline file arrives with its type", () => {
  const image = { type: "image", mimeType: "image/png", data: png };
  const pdf = { type: "resource", mimeType: "application/pdf", data: "JVBERg==" };

  test.each<[what: string, block: object, expected: object]>([
    ["base64 with its type", { type: "image", data: png, mimeType: "image/png" }, image],
    ["base64 without a type", { type: "image", data: png }, image],
    ["a data: URI", { type: "image", uri: `data:image/png;base64,${png}` }, image],
    [
      "a data: URI beside its type",
      { type: "image", uri: `data:image/png;base64,${png}`, mimeType: "image/*" },
      image,
    ],
    ["a data: URI in data", { type: "image", data: `data:image/png;base64,${png}` }, image],
    ["a resource that is an image", { type: "resource", uri: `data:image/png;base64,${png}` }, image],
    [
      "an attachment with its content",
      { type: "attachment", attachmentId: "a", data: png, mimeType: "image/png" },
      image,
    ],
    [
      "a file",
      { type: "file", uri: "data:application/pdf;base64,JVBERg==", filename: "a.pdf" },
      { ...pdf, filename: "a.pdf" },
    ],
    [
      "a text in a data: URI",
      { type: "file", uri: "data:text/plain,a%20b" },
      { type: "resource", mimeType: "text/plain", data: "YSBi" },
    ],
    ["base64 on several lines", { type: "image", uri: "data:image/png;base64,iVBO\nRw0K Ggo=%0A" }, image],
    ["parameters of a data: URI", { type: "image", uri: `data:image/png;name=a.png;base64,${png}` }, image],
    [
      "an image elsewhere, as a link",
      { type: "image", uri: "https://a.example/b.png" },
      { type: "image", uri: "https://a.example/b.png" },
    ],
    [
      "a text, as it is",
      { type: "text", text: "data:image/png;base64,x" },
      { type: "text", text: "data:image/png;base64,x" },
    ],
  ])("%s", (_what, block, expected) => {
    expect(requestOf(user([block])).messages).toEqual<Message[]>([
      { role: "user", content: [expected as never] },
    ]);
  });

  test("an attachment of this turn without its content is refused", () => {
    expect(issuesOf(user([{ type: "attachment", attachmentId: "a" }]))).toEqual([
      expect.objectContaining({ path: "messages[0].content[0].attachmentId" }),
    ]);
  });
});

describe("keys that the operator configured to be ignored", () => {
  const body = {
    ...user("hi"),
    uiHints: { tier: 2 },
    customTools: [
      { name: "a", callRef: "a", annotations: { a: 1 } },
      { name: "b", callRef: "b", annotations: {} },
    ],
  };
  const ignoredKeys = ["uiHints", "customTools[].annotations"];

  test("have no effect, and a warning each", () => {
    const parsed = parseRunRequest(body, { ignoredKeys });
    expect(parsed).toMatchObject({
      ok: true,
      warnings: [
        { path: "uiHints", message: expect.stringContaining("not a known field") },
        { path: "customTools[].annotations" },
      ],
    });
    expect(JSON.stringify(parsed)).not.toContain('"tier"');
    expect(parsed.ok && parsed.request.customTools.map((tool) => Object.keys(tool))).not.toContain(
      "annotations",
    );
  });

  test("may be written in snake_case, as every key", () => {
    expect(issuesOf({ ui_hints: 1 }, ignoredKeys)).toEqual([]);
  });

  test("are refused if they aren't listed, or are elsewhere", () => {
    expect(issuesOf(body).map(({ path }) => path)).toEqual([
      "customTools[0].annotations",
      "customTools[1].annotations",
      "uiHints",
    ]);
    expect(issuesOf({ annotations: {} }, ignoredKeys).map(({ path }) => path)).toEqual(["annotations"]);
    expect(issuesOf({ sandboxPermission: { uiHints: 1 } }, ignoredKeys)).not.toEqual([]);
  });

  test.each([
    "sandboxPermission",
    "sandboxPermision",
    "sandbox_permissions",
    "sandboxPolicy",
    "networkRules",
    "network",
    "netwrok",
    "egress",
    "egressPolicy",
    "filesystems",
    "enforcment",
    "permisions",
    "permissionPolicies",
    "secretsMode",
    "resource",
    "allowList",
    "sandboxPermission.anything",
    "permissions.mode",
    "customTools[].approval",
    "customTools[].read_only_hint",
    "mcpServers[].polcy",
    "mcpServers[].policy.toolRules",
    "gatewayPolicy",
    "gatewayPolicies",
    "gatewayPolicy.anything",
    "modelConnection.gatewayCredentials",
    "modelConnection.subscription",
    "modelConnection.tier",
    "modelConnection.endpoint.extra",
    "credentials[].anything",
    "sandboxCredentials",
    "sandboxCredentials[].usage",
    "toolCallback.extra",
    "mcpServers[].connection.extra",
    "mcpServers[].accessToken",
    "customTools[].apiKey",
    "userLogin",
    "oauth",
  ])("can't be one that may restrict a run or carry a credential: %s", (path) => {
    expect(contractSettingsSchema.safeParse({ ignoredKeys: [path] }).success).toBe(false);
  });

  test.each([
    "sessionId",
    "session_id",
    "Harness",
    "messages[].content",
    "nowhere.at.all",
    "messages[]",
    "a b",
    "",
    "runContext.extra",
  ])("can't be what is known, or is no key: %j", (path) => {
    expect(contractSettingsSchema.safeParse({ ignoredKeys: [path] }).success).toBe(false);
  });

  test.each([
    "uiHints",
    "customTools[].annotations",
    "messages[].content[].providerMetadata",
    "streamOptions",
  ])("can be a key that restricts nothing: %s", (path) => {
    expect(contractSettingsSchema.safeParse({ ignoredKeys: [path] }).error).toBeUndefined();
  });
});
