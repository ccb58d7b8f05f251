import { createHash } from "node:crypto";
import type { FailedResult, Issue } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking, bodyOf, serveScript } from "../support/server.js";

const token = "tenant-token-of-16";
const hash = `sha256:${createHash("sha256").update(token).digest("hex")}`;

const require = {
  network: "allowlist",
  filesystem: "workspace",
  secrets: "hidden",
  enforcement: "strict",
  resources: { memoryMb: 1_024, processes: 100 },
} as const;
const enough = {
  network: { allowlist: ["api.example.com:443"] },
  filesystem: "workspace",
  secrets: "hidden",
  resources: { memoryMb: 512, processes: 100 },
};

type Post = Awaited<ReturnType<typeof serveScript>>["post"];

/** The rules that a request is below, with the fields. */
async function belowRules(post: Post, sandboxPermission: unknown, headers = {}): Promise<readonly string[]> {
  const response = await post("/plan", { ...asking, sandboxPermission }, headers);
  const { failure } = await bodyOf<Partial<FailedResult>>(response);
  return (failure?.issues ?? []).flatMap(({ path, message }: Issue) => {
    const rule = /is below the rule `(require\.[\w.]+)` of (this \w+)/.exec(message);
    return rule === null ? [] : [`${path}: ${rule[1]} of ${rule[2]}`];
  });
}

describe("what a server requires of every boundary", () => {
  it("is named by the refusal of a request below it, rule by rule", async () => {
    const { post } = await serveScript(saying("x"), { configuration: { require } });
    expect(await belowRules(post, undefined)).toEqual([
      "sandboxPermission.network: require.network of this server",
      "sandboxPermission.filesystem: require.filesystem of this server",
      "sandboxPermission.resources.memoryMb: require.resources.memoryMb of this server",
      "sandboxPermission.resources.processes: require.resources.processes of this server",
      "sandboxPermission.secrets: require.secrets of this server",
    ]);
    expect((await post("/run", asking)).status).toBe(400);
    expect(await belowRules(post, enough)).toEqual([]);
    expect(await belowRules(post, { ...enough, network: "off", filesystem: "readonly" })).toEqual([]);
  });

  it.each([
    ["network", "on", "network: require.network"],
    ["network", { allowlist: ["0.0.0.0/0"] }, "network.allowlist: require.network"],
    ["network", { allowlist: ["0.0.0.0/1", "128.0.0.0/1"] }, "network.allowlist: require.network"],
    [
      "network",
      { allowlist: ["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2"] },
      "network.allowlist: require.network",
    ],
    ["network", { allowlist: ["[2000::/3]:443"] }, "network.allowlist: require.network"],
    ["filesystem", "on", "filesystem: require.filesystem"],
    ["resources", { memoryMb: 1_025, processes: 1 }, "resources.memoryMb: require.resources.memoryMb"],
    ["enforcement", "best_effort", "enforcement: require.enforcement"],
  ])("isn't met by %s %j", async (field, value, expected) => {
    const { post } = await serveScript(saying("x"), { configuration: { require } });
    expect(await belowRules(post, { ...enough, [field]: value })).toEqual([
      `sandboxPermission.${expected} of this server`,
    ]);
  });

  it("is more for a token that requires more", async () => {
    const configuration = {
      require: { network: "allowlist" as const },
      tokens: [{ token: hash, project: "one", require: { network: "off" as const } }],
    };
    const { post } = await serveScript(saying("x"), { token: "operators-token-16", configuration });
    const operator = { authorization: "Bearer operators-token-16" };
    const tenant = { authorization: `Bearer ${token}` };
    const listed = { network: { allowlist: ["api.example.com:443"] } };
    expect(await belowRules(post, listed, operator)).toEqual([]);
    expect(await belowRules(post, listed, tenant)).toEqual([
      "sandboxPermission.network: require.network of this token",
    ]);
    expect(await belowRules(post, { network: "on" }, tenant)).toHaveLength(2);
  });
});
