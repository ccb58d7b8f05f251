// needs: jail
import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { open, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { ambit, demo, emptyFolder, startAmbit } from "./support/ambit.js";
import { noJail, observed, unconfined } from "./support/configurations.js";
import { running } from "./support/processes.js";

const refused = { ...demo("say hi"), sandboxPermission: { secrets: "hidden" } };

describe("ambit run", () => {
  it("prints the one result, and nothing else, on stdout", async () => {
    const { code, stdout, stderr } = await ambit(["run", "-"], { input: demo("say hello") });
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, output: "hello" });
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  it("streams records, and ends them with one result", async () => {
    const { code, stdout } = await ambit(["run", "--stream", "-"], { input: demo("say hello") });
    const records = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.filter(({ kind }) => kind === "result")).toHaveLength(1);
    expect(records.at(-1)).toMatchObject({ kind: "result", result: { ok: true, events: [] } });
    expect(code).toBe(0);
  });

  it("shows a timeline on request", async () => {
    const { code, stdout } = await ambit(["run", "--timeline", "-"], {
      input: demo("say hello", "run echo hi"),
    });
    expect(stdout).toMatch(/s +says +hello\n/);
    expect(stdout).toMatch(/s +calls +run \{"command":"echo hi"\}\n/);
    expect(stdout).toMatch(/s +ends +end_turn/);
    expect(stdout).toMatch(/s +receipt +local/);
    expect(code).toBe(0);
  });

  it.each([
    ["a run that fails", ["run", "-"], demo("fail no luck"), 1],
    ["a boundary that can't be guaranteed", ["run", "-"], refused, 3],
    ["the same, planned", ["plan", "--json", "-"], refused, 3],
    ["a request that can't be used", ["run", "-"], { harnes: "demo" }, 4],
    ["the same, planned", ["plan", "--json", "-"], { harnes: "demo" }, 4],
    ["what isn't JSON", ["run", "-"], "{not json", 4],
    ["the same, streamed", ["run", "--stream", "-"], "{not json", 4],
  ])("exits with its own code for %s", async (_, args, input, expected) => {
    const { code, stdout } = await ambit(args, { input });
    const printed = JSON.parse(stdout);
    const result = "kind" in printed ? printed.result : printed;
    expect(result).toMatchObject({ ok: false, error: expect.any(String), failure: { retryable: false } });
    if (input === "{not json") expect(result.error).toMatch(/^Invalid JSON on stdin: /);
    expect(code).toBe(expected);
  });

  it("tells observers about a refused request", async () => {
    const { code, stderr } = await ambit(["run", "-", ...observed], { input: { harness: "none" } });
    expect({ code, stderr }).toEqual({ code: 4, stderr: "observed request_invalid\n" });
  });

  it("exits quietly when the reader of its output exits, such as `head`", async () => {
    const child = startAmbit(["--help"]);
    child.stdout?.destroy();
    let complaint = "";
    child.stderr?.on("data", (chunk) => {
      complaint += chunk;
    });
    const [code] = await once(child, "close");
    expect({ code, complaint }).toEqual({ code: 0, complaint: "" });
  });

  it("cancels a run whose output's reader exits, with an exit code of its own", async () => {
    const child = startAmbit([
      "run",
      "--agent",
      "demo",
      "--folder",
      await emptyFolder(),
      "--stream",
      "stream 20000",
    ]);
    let complaint = "";
    child.stderr?.on("data", (chunk) => {
      complaint += chunk;
    });
    child.stdout?.once("data", () => child.stdout?.destroy());
    const [code] = await once(child, "close");
    expect({ code, complaint }).toEqual({ code: 141, complaint: "" });
  });

  it("ends with its result when it is interrupted", async () => {
    const marker = `sleep ${700_000 + process.pid}`;
    const child = startAmbit(["run", "-"]);
    child.stdin?.end(JSON.stringify(demo("say begun", `run ${marker}`)));
    let stdout = "";
    child.stdout?.on("data", (chunk) => {
      stdout += chunk;
    });
    const exit = new Promise((resolve) => child.once("close", resolve));
    await expect.poll(() => running(marker).length, { timeout: 30_000 }).toBeGreaterThan(0);
    child.kill("SIGINT");
    expect(await exit).toBe(130);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, stopReason: "cancelled", output: "begun" });
    expect(running(marker)).toEqual([]);
  });

  it("ends with its result when `timeout` sends SIGTERM twice to its process group", async () => {
    const marker = `sleep ${710_000 + process.pid}`;
    const child = startAmbit(["run", "--json", "-"], { detached: true });
    child.stdin?.end(JSON.stringify(demo("say begun", `run ${marker}`)));
    const finished = finishOf(child);
    await expect.poll(() => running(marker).length, { timeout: 30_000 }).toBeGreaterThan(0);
    child.kill("SIGTERM");
    process.kill(-(child.pid ?? 0), "SIGTERM");
    const { code, stdout } = await finished;
    expect(code).toBe(143);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, stopReason: "cancelled", output: "begun" });
    expect(running(marker)).toEqual([]);
  });

  it("ends with its result when it is interrupted before it has its request", async () => {
    const pipe = join(await emptyFolder(), "request.json");
    spawnSync("mkfifo", [pipe]);
    const child = startAmbit(["run", "--json", pipe]);
    const finished = finishOf(child);
    // Opens once it is read.
    const request = await open(pipe, "w");
    child.kill("SIGTERM");
    // Before the end of the pipe could count as the end of the request.
    if (child.stdout !== null) await once(child.stdout, "readable");
    await request.close();
    const { code, stdout } = await finished;
    expect(code).toBe(143);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, failure: { code: "run_cancelled" } });
  });
});

it("a configuration's plugins are those of the program's bundle, which starts sooner", async () => {
  const folder = await emptyFolder();
  const { code, stdout } = await ambit(["plugins", ...unconfined], { env: { NODE_V8_COVERAGE: folder } });
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("harness-acp") });
  // A file for each process: probes start some of their own.
  const files = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")),
  );
  const lists = files.map((file): string[] => JSON.parse(file).result.map(({ url }: { url: string }) => url));
  const loaded = lists.find((urls) => urls.some((url) => url.includes("/server/dist/bundle/"))) ?? [];
  expect(loaded).not.toEqual([]);
  expect(loaded.filter((url) => /\/(core|plugins\/[^/]+)\/dist\//.test(url))).toEqual([]);
});

describe("problems at the start of a command", () => {
  it.each([
    [["bogus"], {}, "unknown command 'bogus'"],
    [["run"], {}, "missing required argument 'request'"],
    [["run", "-", "--stream", "--json"], {}, "'--stream' cannot be used with option '--json'"],
    [["serve", "--port", "x"], {}, "It must be 0 to 65535"],
    [
      ["run", "none.json"],
      {},
      "none.json: there is no such file: if these words are a prompt, add --folder .",
    ],
    [["serve"], { AMBIT_PORT: "x" }, "AMBIT_PORT must be a port: 0 to 65535"],
    [["serve"], { AMBIT_HOST: "0.0.0.0" }, "set AMBIT_TOKEN to a long random value, or listen on 127.0.0.1"],
    [["run", "-", "--config", "none.json"], {}, "none.json: there is no such file"],
  ])("%j %o", async (args, env, message) => {
    const { code, stdout, stderr } = await ambit(args, { env });
    expect(stderr).toContain(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  it("names every plugin that can't be loaded, with the fix", async () => {
    const folder = await emptyFolder();
    const plugins = ["no-such-plugin", { use: "@ambit/sandbox-local", config: { unconfind: "allow" } }];
    await writeFile(join(folder, "ambit.config.json"), JSON.stringify({ plugins }));
    const { code, stderr } = await ambit(["plugins"], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain("no-such-plugin: no package of that name is found");
    expect(stderr).toContain("npm install no-such-plugin");
    expect(stderr).toContain("sandbox-local: its config");
    expect(stderr).toContain("unconfind");
  });
});

describe("the host's capabilities", () => {
  it("are listed by doctor: what is proven and how, what isn't and the fix", async () => {
    const { code, stdout } = await ambit(["doctor", ...noJail]);
    expect(stdout).toMatch(/^✖ This host guarantees nothing/);
    expect(stdout).toMatch(/^ {2}✖ network\.deny +refused$/m);
    expect(stdout).toMatch(/^✖ local proves nothing here: no user namespaces here \(EPERM\)$/m);
    expect(stdout).toMatch(/^ {4}fix {2}allow unprivileged user namespaces$/m);
    expect(code).toBe(3);
  });

  it("are a gate for what a deployment requires", async () => {
    const { code, stdout } = await ambit(["doctor", ...noJail, "--require", "network=off,memoryMb=64"]);
    expect(stdout).toMatch(/^✖ --require \(network=off,memoryMb=64\) can't be met by any loaded sandbox/);
    expect(stdout).toContain(
      "local · network.deny, resources.memory, process.contained, environment.named-only",
    );
    expect(stdout).not.toContain("ambit doctor`;");
    expect(code).toBe(3);
    const wrong = await ambit(["doctor", "--require", "netwrk=off"]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("did you mean `network`?") });
  });

  it("are shown by plan for a person", async () => {
    const { code, stdout } = await ambit(["plan", ...noJail, "-"], { input: refused });
    expect(stdout).toMatch(/^✖ Its boundary can't be guaranteed here: .*\n {2}✖ local · secrets\.hidden/);
    expect(stdout).toContain('sandboxPermission.secrets is "hidden"');
    expect(code).toBe(3);
  });

  it("are listed by plugins, with the schema of every configuration", async () => {
    const { code, stdout } = await ambit(["plugins", "--json"]);
    const { configurationSchema, plugins, offers, actors } = JSON.parse(stdout);
    expect(offers).toEqual(
      expect.arrayContaining([
        { plugin: "store-sqlite", kind: "store", name: "sqlite" },
        { plugin: "blobs-folder", kind: "blobs", name: "folder" },
        { plugin: "compat-agenta", kind: "dialect", name: "agenta" },
        { plugin: "metrics-prometheus", kind: "observer", name: "prometheus" },
      ]),
    );
    expect(configurationSchema.properties).toHaveProperty("limits");
    expect(plugins.map(({ name }: { name: string }) => name)).toContain("sandbox-local");
    expect(plugins.every((plugin: object) => "configSchema" in plugin)).toBe(true);
    expect(actors.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["local", "demo"]),
    );
    expect(code).toBe(0);
  });
});

async function finishOf(child: ChildProcess): Promise<{ code: number | null; stdout: string }> {
  if (child.stdout === null) throw new Error("no stdout");
  const [stdout] = await Promise.all([text(child.stdout), once(child, "close")]);
  return { code: child.exitCode, stdout };
}
