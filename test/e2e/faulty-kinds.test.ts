// needs: jail
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Offers } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { ambit, demo, emptyFolder } from "./support/ambit.js";

const use = fileURLToPath(new URL("./support/faulty-kind.mjs", import.meta.url));

interface Situation {
  /** As errors name it. */
  readonly title: string;
  /** The method that has the fault. */
  readonly method: string;
  /** What makes a run use it. */
  readonly request?: object;
  /** The plugins of the defaults in whose place it is. */
  readonly without?: readonly string[];
}

/** Each kind of plugin: one that isn't here doesn't compile. */
const kinds: Readonly<Record<keyof Offers, Situation>> = {
  sandbox: { title: "Sandbox", method: "open", request: { sandbox: "faulty" } },
  executor: {
    title: "Executor",
    method: "execute",
    request: { customTools: [{ name: "act", kind: "faulty", permission: "allow" }] },
  },
  delivery: {
    title: "Delivery",
    method: "publish",
    request: { customTools: [{ name: "ask", kind: "client" }] },
    without: ["@ambit/mcp-http"],
  },
  harness: { title: "Harness", method: "start", request: { harness: "faulty-agent" } },
  toolSource: {
    title: "Tool source",
    method: "connect",
    request: { mcpServers: [{ name: "s", connection: { type: "http", url: "http://127.0.0.1:9/" } }] },
    without: ["@ambit/mcp-client"],
  },
  gateway: {
    title: "Model gateway",
    method: "open",
    request: { harness: "faulty-agent" },
    without: ["@ambit/model-route"],
  },
  observer: { title: "Observer", method: "observe" },
  store: { title: "Store", method: "open", without: ["@ambit/store-sqlite"] },
  blobs: {
    title: "Place for files",
    method: "open",
    request: { outputs: { include: ["*"] } },
    without: ["@ambit/blobs-folder"],
  },
  dialect: { title: "Dialect", method: "translate" },
  door: { title: "Door", method: "stdio" },
  toolPolicy: { title: "Tool policy", method: "forRun" },
};
const names = Object.keys(kinds).filter((name): name is keyof Offers => Object.hasOwn(kinds, name));
const faults = ["lying", "crashing"] as const;

async function configurationWith(kind: keyof Offers, fault: string): Promise<string> {
  const file = join(await emptyFolder(), "ambit.config.json");
  const { without = [] } = kinds[kind];
  const plugins = [{ use, config: { kind, fault } }];
  await writeFile(file, JSON.stringify({ extends: "defaults", plugins, without }));
  return file;
}

async function run(kind: keyof Offers, fault: string, more: object = {}) {
  const config = await configurationWith(kind, fault);
  const input = { ...demo("call act {}", "say done"), ...kinds[kind].request, ...more };
  const { stdout, stderr } = await ambit(["--config", config, "run", "-"], { input });
  return { result: JSON.parse(stdout === "" ? "{}" : stdout), stderr };
}

describe("a plugin of every kind", () => {
  it("isn't loaded where it is malformed: each is named with what it lacks", async () => {
    const config = await configurationWith("sandbox", "malformed");
    const { code, stderr } = await ambit(["--config", config, "run", "-"], { input: demo("say done") });
    expect(code).toBe(2);
    for (const name of names) {
      const { method } = kinds[name];
      expect(stderr, name).toMatch(new RegExp(`${name} 'faulty' isn't one: .*${method} must be a method`));
    }
    expect(stderr).toContain(use);
  });

  const inRuns = names.filter((name) => !["observer", "store", "door"].includes(name));
  it.for(inRuns.flatMap((kind) => faults.map((fault) => ({ kind, fault }))))(
    "ends its run by name: a $kind, $fault",
    async ({ kind, fault }) => {
      const { result, stderr } = await run(kind, fault);
      const { title, method } = kinds[kind];
      // Where files are kept is an operator's matter, unless the plugin opens something else.
      const code = kind === "blobs" && fault === "crashing" ? "outputs_failed" : "plugin_broke_contract";
      expect(result, stderr).toMatchObject({ ok: false, failure: { code } });
      expect(result.error).toContain(`${title} 'faulty' of the plugin 'faulty' (${use})`);
      if (fault === "lying") expect(result.error).toContain(`from ${method}()`);
      else expect(stderr).toContain("undefined is not a function");
    },
  );

  it.for(faults)("is named in the log, and the run goes on: an observer, %s", async (fault) => {
    const { result, stderr } = await run("observer", fault);
    expect(result).toMatchObject({ ok: true, output: "done" });
    expect(stderr).toContain("Observer 'faulty' of the plugin 'faulty'");
  });

  it.for(faults)("keeps a server from starting: a store, %s", async (fault) => {
    const config = await configurationWith("store", fault);
    const { code, stderr } = await ambit(["--config", config, "serve", "--port", "0"]);
    expect(code, stderr).toBe(2);
    expect(stderr).toContain("the store 'faulty' can't be opened");
  });

  it.for(["sandbox", "executor", "delivery", "toolSource", "gateway"] as const)(
    "covers nothing that it claims without a finding: a %s",
    async (kind) => {
      const sandboxPermission = { secrets: "hidden" };
      const { result } = await run(kind, "overclaiming", { sandboxPermission });
      expect(result.failure).toMatchObject({ code: "boundary_refused" });
      expect(result.failure.gaps).toContainEqual(
        expect.objectContaining({ actor: "faulty", capability: "secrets.hidden" }),
      );
    },
  );
});
