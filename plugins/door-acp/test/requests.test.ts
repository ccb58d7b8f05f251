import { readFileSync } from "node:fs";
import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import { AmbitError, type InteractionRequest } from "@ambit/client";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { requestErrorOf } from "../src/failure.js";
import { mcpServersOf } from "../src/mcp-servers.js";
import { inFolder, optionsOf } from "../src/options.js";
import { decisionOf, permissionOf } from "../src/permission.js";
import { messageOf, promptOf } from "../src/prompt.js";
import {
  chosenIn,
  configOptionsOf,
  modeStateOf,
  nothingChosen,
  optionsWith,
  requireMode,
  withChoices,
} from "../src/settings.js";

const folder = "/srv/app";
const none = async () => undefined;

describe("a prompt", () => {
  it("becomes the agent's, with the paths that it sees", async () => {
    const prompt = [
      { type: "text", text: "Look at " },
      { type: "resource_link", name: "a b.ts", uri: "file:///srv/app/src/a%20b.ts" },
      { type: "resource_link", name: "passwd", uri: "file:///etc/passwd" },
      { type: "resource_link", name: "page", uri: "https://example.com/x" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      {
        type: "resource",
        resource: { uri: "file:///srv/app/n.md", text: "note", mimeType: "text/markdown" },
      },
      { type: "resource", resource: { uri: "zed:///selection", blob: "AAAA" } },
    ] as const;
    expect(await messageOf(prompt, folder, none)).toEqual([
      { type: "text", text: "Look at " },
      { type: "text", text: "[a b.ts](/workspace/src/a b.ts)" },
      {
        type: "text",
        text: "[passwd](file:///etc/passwd) (outside of the workspace, where you can't read it)",
      },
      { type: "text", text: "[page](https://example.com/x)" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "resource", uri: "file:///workspace/n.md", text: "note", mimeType: "text/markdown" },
      { type: "resource", uri: "zed:///selection", data: "AAAA" },
    ]);
    // Shown again, it is the user's.
    const content = [...(await messageOf(prompt, folder, none))];
    expect(promptOf({ messages: [{ role: "user", content }] }, folder)).toEqual(prompt);
  });

  it("brings unsaved text of the folder's files only", async () => {
    const read: string[] = [];
    const unsaved = async (path: string) => {
      read.push(path);
      return "draft";
    };
    const link = (uri: string) => ({ type: "resource_link", name: "x", uri }) as const;
    const uris = ["file:///srv/app/x", "file:///srv/app/../secret", "file:///srv/apple", "https://srv/app/x"];
    const message = await messageOf(uris.map(link), folder, unsaved);
    expect(read).toEqual(["/srv/app/x"]);
    expect(message[2]).toEqual({
      type: "resource",
      uri: "file:///workspace/x",
      mimeType: "text/plain",
      text: "draft",
    });
    const content = [...message];
    expect(promptOf({ messages: [{ role: "user", content }] }, folder)).toEqual(uris.map(link));
  });

  it("is shown again without what was too large to be kept", () => {
    const content = [
      { type: "text", text: "Look" },
      { type: "image", data: "[redacted]" },
    ];
    const texts = [
      { type: "text", text: "Look" },
      { type: "text", text: "[image]" },
    ];
    expect(promptOf({ messages: [{ role: "user", content }] }, folder)).toEqual(texts);
    expect(promptOf(undefined, folder)).toEqual([]);
  });

  it("is refused where no agent gets it", async () => {
    const sound = { type: "audio", data: "AAAA", mimeType: "audio/wav" } as const;
    await expect(messageOf([sound], folder, none)).rejects.toThrow("prompt[0] is of the type 'audio'");
    await expect(messageOf([{ type: "text", text: " " }], folder, none)).rejects.toThrow("empty");
  });
});

it("takes the editor's MCP servers, with headers as credentials, and names what it can't take", () => {
  const servers: McpServer[] = [
    {
      type: "http",
      name: "My docs!",
      url: "https://x/mcp",
      headers: [{ name: "authorization", value: "s" }],
    },
    { name: "ambit", command: "npx", args: ["-y", "a"], env: [{ name: "A", value: "1" }] },
    { name: "My docs?", command: "b", args: [], env: [] },
  ];
  expect(mcpServersOf(servers)).toEqual([
    {
      name: "My_docs_",
      connection: {
        type: "http",
        url: "https://x/mcp",
        credentials: [{ binding: { kind: "header", name: "authorization" }, value: "s" }],
      },
    },
    {
      name: "ambit_editor",
      connection: { type: "stdio", command: "npx", args: ["-y", "a"], env: { A: "1" } },
    },
    { name: "My_docs__2", connection: { type: "stdio", command: "b", args: [], env: {} } },
  ]);
  expect(() => mcpServersOf([{ type: "sse", name: "old", url: "https://x", headers: [] }])).toThrow(
    "'old' (sse)",
  );
});

describe("the command line", () => {
  it("makes the request, over the configuration's", () => {
    expect(optionsOf([], {}).template).toEqual({
      interactions: { waitMs: 86_400_000 },
      sandboxPermission: { network: "off", filesystem: "workspace" },
    });
    const words =
      "--agent gemini --sandbox local --model a --model b --network x.org,y.org --memory 512 --secrets hidden";
    const configured = { harness: "demo", interactions: { waitMs: 5 }, permissions: { rules: [] } };
    expect(optionsOf([...words.split(" "), "--permissions", "ask", "--without-mcp"], configured)).toEqual({
      template: {
        interactions: { waitMs: 5 },
        harness: "gemini",
        sandbox: "local",
        model: "a",
        permissions: { rules: [], default: "ask" },
        sandboxPermission: {
          network: { allowlist: ["x.org", "y.org"] },
          filesystem: "workspace",
          resources: { memoryMb: 512 },
          secrets: "hidden",
        },
      },
      models: ["a", "b"],
      withoutMcp: true,
    });
    const boundary = '{"network":"on","enforcement":"best_effort"}';
    expect(optionsOf(["--boundary", boundary], {}).template.sandboxPermission).toEqual({
      network: "on",
      enforcement: "best_effort",
      filesystem: "workspace",
    });
  });

  it.each([
    ["--agnet x", "--agent"],
    ["--permissions yolo", "--permissions: must be one of allow"],
    ["--filesystem on", "--filesystem: must be one of workspace, readonly"],
    ["--boundary off", "--boundary: must be a JSON object"],
  ])("refuses %s", (words, why) => {
    expect(() => optionsOf(words.split(" "), {})).toThrow(why);
  });
});

it("protects what git runs or reads in the folder", () => {
  const guarded = { readable: [".husky"], denied: [".git"] };
  expect(inFolder({ sandboxPermission: { filesystem: "workspace" } }, guarded).sandboxPermission).toEqual({
    filesystem: { mode: "workspace", readable: [".husky"], denied: [".git"] },
  });
  const filesystem = { mode: "workspace" as const, readable: ["a"], denied: ["b"] };
  expect(inFolder({ sandboxPermission: { filesystem } }, guarded).sandboxPermission?.filesystem).toEqual({
    mode: "workspace",
    readable: ["a", ".husky"],
    denied: ["b", ".git"],
  });
  const readonly = { sandboxPermission: { filesystem: "readonly" } } as const;
  expect(inFolder(readonly, guarded)).toBe(readonly);
});

describe("a question", () => {
  type Payload = NonNullable<InteractionRequest["payload"]>;
  const question = (payload: Payload) =>
    ({ type: "interaction_request", id: "ask_1", kind: "user_approval", payload }) as const;
  const optionIds = (payload: Payload, asking: Parameters<typeof permissionOf>[3] = {}) =>
    permissionOf("s", question(payload), folder, asking).options.map(({ optionId }) => optionId);

  it("is remembered only where a rule of the session can say so", () => {
    const once = ["allow", "reject"];
    expect(optionIds({ toolName: "run" })).toEqual(["allow", "allow_always", "reject"]);
    expect(optionIds({ toolName: "run", server: "lab" })).toEqual(once);
    expect(optionIds({ toolName: "run", used: { usd: 1 } })).toEqual(once);
    expect(optionIds({ toolName: "run", earlierOutcome: "unknown" })).toEqual(once);
    const rules = [{ pattern: "shell", permission: "ask" as const }];
    expect(optionIds({ toolName: "run" }, { permissions: { rules } })).toEqual(once);
    const customTools = [{ name: "run", kind: "client" as const }];
    expect(optionIds({ toolName: "run" }, { customTools })).toEqual(once);
  });

  it("says what the call would do", () => {
    const payload = {
      toolName: "Edit",
      input: { file_path: "/workspace/a" },
      changes: [{ path: "/workspace/a", oldText: "1", newText: "2" }],
      locations: [{ path: "/workspace/a" }],
      earlierOutcome: "unknown" as const,
    };
    expect(permissionOf("s", question(payload), folder, {}).toolCall).toMatchObject({
      toolCallId: "ask_1",
      title: "Edit a (it may have run before: its outcome is unknown)",
      content: [{ type: "diff", path: "/srv/app/a", oldText: "1", newText: "2" }],
      locations: [{ path: "/srv/app/a" }],
    });
  });

  it.each([
    ["allow", { approved: true }],
    ["allow_always", { approved: true, remembered: "run" }],
    ["reject", { approved: false }],
    ["anything", { approved: false }],
  ])("is answered with %s", (optionId, decision) => {
    expect(decisionOf({ outcome: "selected", optionId }, question({ toolName: "run" }))).toEqual(decision);
  });

  it("is denied where the editor cancels it", () => {
    expect(decisionOf({ outcome: "cancelled" }, question({ toolName: "run" }))).toEqual({ approved: false });
  });
});

describe("the user's choices", () => {
  const choices = {
    template: { permissions: { rules: [{ pattern: "wipe", permission: "deny" as const }] }, model: "a" },
    models: ["a", "b"],
    efforts: ["low" as const, "high" as const],
  };
  const chosen = { mode: "ask", options: { model: "b", effort: "high" }, allowed: ["write"] };

  it("are part of the request", () => {
    expect(withChoices(choices, chosen)).toEqual({
      permissions: {
        default: "ask",
        rules: [
          { pattern: "wipe", permission: "deny" },
          { pattern: "write", permission: "allow" },
        ],
      },
      model: "b",
      reasoningEffort: "high",
    });
    expect(modeStateOf(choices, chosen).currentModeId).toBe("ask");
    expect(configOptionsOf(choices, chosen)).toMatchObject([
      { id: "model", category: "model", currentValue: "b" },
      { id: "effort", category: "thought_level", currentValue: "high" },
    ]);
  });

  it.each([
    ["asks as often", { permissions: { default: "allow_reads" as const } }, { mode: "allow_reads" }],
    ["asks more often", { permissions: { default: "ask" as const } }, { mode: "ask" }],
    ["asks less often", { permissions: { default: "allow" as const } }, {}],
    ["had an offered model", { model: "b", reasoningEffort: "high" as const }, { options: chosen.options }],
    ["had another model", { model: "c", reasoningEffort: "max" as const }, {}],
    ["allowed a tool", { permissions: { rules: [{ pattern: "write", permission: "allow" as const }] } }, {}],
  ])("are of a session that is opened again, which %s", (_what, request, expected) => {
    expect(chosenIn(request, choices)).toEqual({ ...nothingChosen, ...expected });
  });

  it("are those that are offered", () => {
    expect(() => requireMode(choices, chosen, "deny")).toThrow("one of allow_reads, ask, allow");
    expect(optionsWith(choices, chosen, "effort", "default")).toEqual({ model: "b" });
    expect(() => optionsWith(choices, chosen, "model", "c")).toThrow("model must be one of a, b");
    expect(() => optionsWith(choices, chosen, "colour", "red")).toThrow("no option 'colour'");
  });
});

it("says every reason of a refusal, and how to log in", () => {
  const gap = { actor: "local", capability: "network.deny", reason: "no jail", fix: "install one" } as const;
  const issues = [
    { path: "mcpServers[0].connection.url", message: "must be https" },
    { path: "modelConnection.credentials", message: "is required" },
  ];
  const error = new AmbitError("refused", {
    code: "boundary_refused",
    retryable: false,
    result: {
      ok: false,
      error: "refused",
      events: [],
      failure: { code: "boundary_refused", retryable: false, gaps: [gap], issues },
    },
  });
  const refusal = requestErrorOf(error, { login: "Set KEY.", servers: ["docs"] });
  expect([refusal.code, refusal.message.split("\n")]).toEqual([
    -32_000,
    [
      "Ambit refuses to start the agent:",
      "- local · network.deny: no jail: install one",
      "- mcpServers['docs'].connection.url: must be https",
      "- modelConnection.credentials: is required",
      "Set KEY.",
    ],
  ]);
});

/** What the ACP registry asks of an entry: `agent.schema.json` and CONTRIBUTING.md of agentclientprotocol/registry. */
const registryEntry = z.object({
  id: z.string().regex(/^[a-z][a-z0-9-]*$/),
  name: z.string().min(1),
  version: z.string().regex(/^\d+\.\d+\.\d+$/),
  description: z.string().min(1),
  license: z.string(),
  distribution: z.strictObject({
    npx: z.strictObject({ package: z.string().min(1), args: z.array(z.string()) }),
  }),
});

it("has an entry for the ACP registry", () => {
  const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
  const { version, distribution } = registryEntry.parse(JSON.parse(read("agent.json")));
  expect(version).toBe(JSON.parse(read("package.json")).version);
  expect(distribution.npx.package).toBe(`ambit@${version}`);
  const icon = read("icon.svg");
  expect(icon).toContain('width="16" height="16"');
  const colours = [...icon.matchAll(/(?:fill|stroke)="([^"]*)"/g)].map(([, colour]) => colour);
  expect(new Set(colours)).toEqual(new Set(["none", "currentColor"]));
});
