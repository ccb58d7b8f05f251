import { existsSync, realpathSync } from "node:fs";
import { demoAgentEntry } from "@ambit/agent-demo";
import type { Rootfs, RunRequest } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { AcpHarness } from "../../src/index.js";
import { codex } from "../../src/profiles/codex.js";
import { demo } from "../../src/profiles/demo.js";
import { gemini } from "../../src/profiles/gemini.js";
import { credential, demoHere, geminiHere, here, withKey } from "../support/harnesses.js";
import { requestOf } from "../support/runs.js";

describe("files of the runner that a sandbox shows", () => {
  it("are the agent's packages and Node.js, and all exist", async () => {
    for (const harness of [demoHere, geminiHere]) {
      await expect(harness.probe()).resolves.toEqual([]);
      const paths = harness.requiredPaths("host").map(({ path }) => path);
      expect(paths.length).toBeGreaterThan(1);
      expect(paths.filter((path) => !existsSync(path))).toEqual([]);
      // Whole trees would show other packages of the deployer.
      expect(paths.filter((path) => path.endsWith("node_modules"))).toEqual([]);
    }
  });

  it("are a bundled agent's own package alone, unless the deployer names another program", () => {
    const packages = (harness: AcpHarness) =>
      new Set(
        harness
          .requiredPaths("host")
          .filter(({ what }) => what !== "Node.js")
          .map(({ path }) => realpathSync(path)),
      );
    expect([...packages(demoHere)]).toEqual([expect.stringMatching(/\/agents\/demo$/)]);
    const own = new AcpHarness(demo, { ...here, command: demoAgentEntry });
    expect(packages(own).size).toBeGreaterThan(5);
  });

  it("are mounted into a sandbox with an image only where it mounts files, unless the deployer names the image's program", () => {
    const pathsOf = (harness: AcpHarness, rootfs: Rootfs) =>
      harness.requiredPaths(rootfs).map(({ path }) => path);
    const mounted = pathsOf(geminiHere, "image-with-mounts");
    expect(mounted).toEqual(pathsOf(geminiHere, "host").filter((path) => mounted.includes(path)));
    expect(mounted).toContainEqual(expect.stringMatching(/@google\/gemini-cli$/));
    expect(new Set(mounted).size).toBe(mounted.length);
    expect(pathsOf(geminiHere, "image")).toEqual([]);
    const ofImage = new AcpHarness(gemini, { ...here, commandInImage: "gemini" });
    expect(pathsOf(ofImage, "image-with-mounts")).toEqual([]);
    for (const rootfs of ["image", "image-with-mounts"] as const)
      expect(pathsOf(demoHere, rootfs)).toHaveLength(1);
  });

  it.each<{ what: string; request: RunRequest; env: Record<string, string>; visible: string[] }>([
    { what: "the request's", request: withKey, env: {}, visible: ["GEMINI_API_KEY"] },
    {
      what: "the deployer's",
      request: requestOf(),
      env: { GEMINI_API_KEY: "k", A: "b" },
      visible: ["GEMINI_API_KEY"],
    },
    {
      what: "none if none is passed in",
      request: requestOf({
        modelConnection: { credentialMode: "none", credentials: [credential("GEMINI_API_KEY")] },
      }),
      env: {},
      visible: [],
    },
  ])("$what credentials are visible inside", ({ request, env, visible }) => {
    const harness = new AcpHarness(gemini, { ...here, env });
    expect(harness.visibleCredentials(request)).toEqual(visible);
  });

  it("credentials that it only sends to its model may be hidden, and are sent to that host only", () => {
    const request = requestOf({
      modelConnection: {
        endpoint: { baseUrl: "https://models.example.com/v1" },
        credentials: [
          { binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "k" },
          { binding: { kind: "environment", name: "SIGNING_KEY" }, value: "s", usage: "local_use" },
        ],
      },
    });
    expect(new AcpHarness(gemini, here).hideableCredentials(request)).toEqual([
      { name: "GEMINI_API_KEY", value: "k", hosts: ["models.example.com"] },
    ]);
    expect(demoHere.hideableCredentials(request)).toEqual([]);
  });

  it("no configuration file of Codex holds a credential", () => {
    const request = requestOf({
      model: 'x"\ny = 1',
      modelConnection: {
        credentials: [{ binding: { kind: "environment", name: "OPENAI_API_KEY" }, value: "sk-secret" }],
      },
    });
    const servers = [{ name: "ambit", url: "http://127.0.0.1:1/mcp", headers: {} }];
    const places = { home: "/h", workspace: "/w", fresh: "/h/fresh" };
    const given = { ...places, request, endpoint: {}, servers, searchPath: "/bin" };
    const prepared = codex.prepare({ ...given, model: 'x"\ny = 1' });
    expect(JSON.stringify(prepared)).not.toContain("sk-secret");
    const config = String(prepared.files.find(({ path }) => path.endsWith("config.toml"))?.content);
    expect(config.split("\n")[0]).toBe('model = "x\\"\\ny = 1"');
  });
});
