import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { beforeAll, describe, expect, it } from "vitest";
import { ambit, demo, emptyFolder, serve } from "../support/ambit.js";
import { installPacked } from "../support/outside.js";
import { pageJson, toolsOf, writePageCode } from "../support/page-code.js";
import { passKit } from "../support/run-kit.js";

/** Each plugin of the page, with its number of files. */
const plugins = { "ambit-rows": 2, "ambit-drawer": 2, "ambit-short": 1, "ambit-plain": 2 };
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-page-"));
  const [manifest, tsconfig] = await pageJson("docs/write-a-plugin.md");
  const packages = [
    "core",
    "packages/durable",
    "packages/sql-store",
    "packages/workspace",
    "packages/client",
    "test/kit",
  ];
  await installPacked(folder, packages, toolsOf(manifest));
  const compiler = join(folder, "node_modules/typescript/bin/tsc");
  for (const [name, files] of Object.entries(plugins)) {
    expect(await writePageCode("docs/write-the-other-kinds.md", name, folder), name).toBe(files);
    await writeFile(join(folder, name, "package.json"), JSON.stringify({ ...Object(manifest), name }));
    await writeFile(join(folder, name, "tsconfig.json"), JSON.stringify(tsconfig));
    await symlink(join("..", name), join(folder, "node_modules", name));
    await execa(process.execPath, [compiler, "-p", join(folder, name)]);
  }
  return () => rm(folder, { recursive: true, force: true });
}, 120_000);

describe("the page of the rarer kinds", () => {
  it("has a store that passes the kit", { timeout: 240_000 }, async () => {
    expect(await passKit(folder, "ambit-rows")).toBeGreaterThan(50);
  });

  it("has a place for files that passes the kit", { timeout: 120_000 }, async () => {
    expect(await passKit(folder, "ambit-drawer")).toBeGreaterThan(15);
  });

  it("has a dialect whose requests run, and whose mistakes are refused by their path", async () => {
    const file = join(await emptyFolder(), "ambit.config.json");
    const short = join(folder, "ambit-short/dist/index.js");
    await writeFile(file, JSON.stringify({ extends: "defaults", plugins: [short] }));
    const run = async (input: object) => {
      const { stdout } = await ambit(["--config", file, "run", "-"], {
        input: { harness: "demo", ...input },
      });
      return JSON.parse(stdout);
    };
    expect(await run({ ask: "say done" })).toMatchObject({ ok: true, output: "done" });
    expect((await run({ ask: 1 })).failure.issues).toContainEqual({ path: "ask", message: "must be a text" });
    expect((await run({ aks: "say done" })).error).toContain("did you mean `ask`?");
  });

  it("has a door that passes the kit, and whose clients read the text of a run", async () => {
    expect(await passKit(folder, "ambit-plain")).toBeGreaterThan(8);
    const config = join(await emptyFolder(), "ambit.config.json");
    const plugins = [join(folder, "ambit-plain/dist/index.js")];
    await writeFile(config, JSON.stringify({ extends: "defaults", plugins }));
    const server = await serve({}, ["--config", config]);
    const refused = await server.post("/plain/run", { chat: "c1", prompt: "say done", agent: "demo" });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { failure: { code: "request_invalid" } },
    ]);
    expect(await (await server.post("/plain/run", { chat: "c1", prompt: "say done" })).text()).toBe("done");
  });

  it("has a store and a place for files that a server uses", async () => {
    const own = await emptyFolder();
    const config = join(own, "ambit.config.json");
    const at = (name: string) => join(folder, name, "dist/index.js");
    const plugins = [
      { use: at("ambit-rows"), config: { file: join(own, "runs.sqlite") } },
      { use: at("ambit-drawer"), config: { file: join(own, "files.sqlite") } },
    ];
    const without = ["@ambit/store-sqlite", "@ambit/blobs-folder"];
    await writeFile(config, JSON.stringify({ extends: "defaults", plugins, without }));
    const server = await serve({}, ["--config", config]);
    const response = await server.post("/run", {
      ...demo("write out.txt kept"),
      outputs: { include: ["*"] },
    });
    const { runId, ...result } = JSON.parse(await response.text());
    expect(result).toMatchObject({ ok: true, receipt: { outputs: { files: [{ path: "out.txt" }] } } });
    expect(await (await fetch(`${server.url}/runs/${runId}/files/out.txt`)).text()).toBe("kept");
  });
});
