// needs: jail, git
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import type { Forge } from "../support/forge/forge.js";
import { startForgeServer } from "../support/forge/forge-server.js";

const token = `ghp_${"reader00".repeat(5)}`;
let forge: Forge;
let server: Server;

beforeAll(async () => {
  const started = await startForgeServer({ [token]: { fetch: /^\/acme\// } });
  ({ forge, server } = started);
  return started.close;
}, 120_000);

const git = (name: string, more: object = {}) => ({
  type: "git",
  url: forge.url(`acme/${name}`),
  credential: { value: token },
  ...more,
});
const closed = { network: "off", filesystem: "workspace" };
const usual = ".devcontainer/devcontainer.json";

async function run(source: object, environment: object, script = "true") {
  const body = {
    ...demo(`run ${script}`, "say done"),
    sandboxPermission: closed,
    workspace: { sources: [source] },
    environment: { boundary: { network: "off" }, ...environment },
  };
  const result = JSON.parse(await (await server.post("/run", body)).text());
  const ended = (result.events ?? []).find(({ type }: { type: string }) => type === "tool_result");
  return { result, printed: String(ended?.output) };
}

describe("a repository's devcontainer.json", { timeout: 120_000 }, () => {
  it("gives commands and variables of the setup, as its commit has them", async () => {
    const file = (said: string) => `// comments may be there
      {
        "name": "app", "customizations": {}, "postStartCommand": "touch started",
        "containerEnv": { "SAID": "${said}", "OTHER": "of the file" },
        "onCreateCommand": ["sh", "-c", "pwd > made"],
        "postCreateCommand": { "one": "echo $SAID $OTHER >> made" },
      }`;
    forge.repository("acme/app", { [usual]: file("second") }, (repository, made) => {
      repository("checkout", "-q", "-b", "next");
      repository("commit", "-qm", "Another setup");
      repository("checkout", "-q", "-b", "main");
      writeFileSync(join(made, usual), file("first"));
      repository("add", "-A");
    });
    const environment = {
      devcontainer: {},
      setup: ["echo last >> app/made"],
      env: { OTHER: "of the request" },
    };
    const into = { into: "app" };
    const look = 'cat app/made; ls app; echo "[$SAID]"';
    const first = await run(git("app", into), environment, look);
    expect(first.result, server.log()).toMatchObject({ ok: true });
    expect(first.printed).toMatch(/\/app\nfirst of the request\nlast\n/);
    expect(first.printed).not.toContain("started");
    // Variables of the setup aren't the agent's.
    expect(first.printed).toContain("[]");
    expect(first.result.warnings).toContainEqual({
      path: "environment.devcontainer",
      message: expect.stringContaining('"customizations", "postStartCommand"'),
    });
    expect(first.result.receipt.environment).toMatchObject({ from: "built", kept: true });
    expect((await run(git("app", into), environment)).result.receipt.environment.from).toBe("cache");

    const other = await run(git("app", { ref: "next", into: "app" }), environment, look);
    expect(other.printed).toContain("second of the request");
    expect(other.result.receipt.environment.from).toBe("built");
  });

  it.for<[what: string, name: string, file: object, devcontainer: object, said: string]>([
    ["a command for the host", "host", { initializeCommand: "true" }, {}, "would run on the host"],
    ["an image to build", "build", { build: { dockerfile: "Dockerfile" } }, {}, "has build"],
    ["another image", "image", { image: "debian:12" }, {}, 'made for the image "debian:12"'],
    [
      "a command that fails",
      "fails",
      { onCreateCommand: "echo why; exit 3" },
      {},
      "onCreateCommand exited with 3",
    ],
    ["a program that isn't there", "none", { onCreateCommand: ["no-such-program"] }, {}, "exited with 127"],
    ["another path", "path", {}, { path: "other.json" }, "has no other.json"],
    ["too many bytes", "large", { name: "x".repeat(70_000) }, {}, "more than 65536 bytes"],
  ])("fails the run with %s", async ([, name, file, devcontainer, said]) => {
    forge.repository(`acme/${name}`, { [usual]: JSON.stringify(file) });
    const { result } = await run(git(name), { devcontainer });
    expect(result).toMatchObject({ ok: false, failure: { code: "setup_failed" } });
    expect(result.error).toContain(said);
    expect(result.error).toContain("environment.devcontainer");
  });

  it("may be at another place, and for an image that the request does without", async () => {
    const file = JSON.stringify({ image: "debian:12", onCreateCommand: "echo made > made" });
    forge.repository("acme/short", { ".devcontainer.json": file, "a/b.json": file });
    for (const path of [undefined, "a/b.json"]) {
      const devcontainer = { image: "ignore", path };
      const { result, printed } = await run(git("short"), { devcontainer }, "cat made");
      expect(result, server.log()).toMatchObject({ ok: true });
      expect(printed).toContain("made");
      expect(JSON.stringify(result.warnings)).toContain("debian:12");
    }
  });

  it("is refused by its field without a repository, and without anything to do", async () => {
    const issues = async (environment: object, workspace?: object) => {
      const body = { ...demo("say hi"), sandboxPermission: closed, environment, workspace };
      return JSON.parse(await (await server.post("/plan", body)).text()).failure?.issues;
    };
    expect(await issues({ devcontainer: {} })).toMatchObject([{ path: "environment.devcontainer" }]);
    expect(await issues({ setup: ["true"], inputs: ["*.lock"] }, { sources: [git("app")] })).toMatchObject([
      { path: "environment.inputs", message: expect.stringContaining("of type files") },
    ]);
    expect(await issues({})).toMatchObject([{ path: "environment.setup" }]);
  });
});
