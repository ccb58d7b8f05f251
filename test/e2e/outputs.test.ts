// needs: jail, git
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  ambit,
  demo,
  emptyFolder,
  isMessage,
  ndjson,
  readUntil,
  recordsOf,
  resultOf,
  serve,
} from "./support/ambit.js";
import { outputsOn, working } from "./support/outputs.js";

const confined = { sandboxPermission: { network: "off", filesystem: "workspace" } };

describe("the outputs of a run", () => {
  it("are files, a patch and an archive of a server, until the run is deleted", async () => {
    const folder = await emptyFolder();
    const server = await serve({ AMBIT_BLOBS_FOLDER: join(folder, "blobs") });
    const { runId, result, outputs, patch } = await outputsOn(server, { ...working, ...confined });
    const get = (path: string) => fetch(`${server.url}/runs/${runId}${path}`);

    expect(outputs.files).toMatchObject([{ path: "dist/report.txt", size: 5 }]);
    expect(outputs.omitted).toEqual([
      { path: "dist/link", reason: "link" },
      { path: "dist/pipe", reason: "special" },
    ]);
    expect(
      outputs.patch.changes.map(({ path, change }: Record<string, string>) => `${change} ${path}`),
    ).toEqual([
      "added dist/report.txt",
      "modified src/app.txt",
      "added src/binary",
      "deleted src/gone.txt",
      "modified src/run.sh",
    ]);
    expect(result.events).toContainEqual({
      type: "file",
      url: `/runs/${runId}/files/dist/report.txt`,
      mediaType: "text/plain",
      ...outputs.files[0],
    });

    // A stranger applies the patch to the files that the request had.
    const copy = join(folder, "copy");
    mkdirSync(copy);
    for (const { path, content } of working.harnessFiles) {
      mkdirSync(join(copy, path, ".."), { recursive: true });
      writeFileSync(join(copy, path), content);
    }
    execFileSync("git", ["apply", "-"], { cwd: copy, input: patch });
    expect(readFileSync(join(copy, "src/app.txt"), "utf8")).toBe("one\n2\nthree\n");
    expect(readFileSync(join(copy, "src/binary"))).toEqual(Buffer.from("a\0b"));
    expect(statSync(join(copy, "src/run.sh")).mode & 0o111).not.toBe(0);
    expect(() => statSync(join(copy, "src/gone.txt"))).toThrow("ENOENT");

    const { files } = JSON.parse(await (await get("/files")).text());
    expect(files.map(({ path }: Record<string, string>) => path)).toEqual([
      "dist/report.txt",
      "src/app.txt",
      "src/binary",
      "src/run.sh",
    ]);
    const file = await get("/files/dist/report.txt");
    expect(Object.fromEntries(file.headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-disposition": "attachment",
      "x-content-type-options": "nosniff",
      "content-length": "5",
    });
    expect(await file.text()).toBe("done\n");
    for (const path of ["/files/dist/link", "/files/../../../../etc/passwd", "/files/src/gone.txt"])
      expect((await get(path)).status, path).toBe(404);
    const archive = Buffer.from(await (await get("/archive")).arrayBuffer());
    expect(execFileSync("tar", ["-t"], { input: archive }).toString().split("\n")).toContain("src/binary");

    await fetch(`${server.url}/runs/${runId}`, { method: "DELETE" });
    expect((await get("/files")).status).toBe(404);
    expect(execFileSync("find", [join(folder, "blobs"), "-type", "f"]).toString()).toBe("");
  });

  it("are there when it pauses, and after a failure of the agent; a run without them has none", async () => {
    const server = await serve({ AMBIT_BLOBS_FOLDER: await emptyFolder() });
    const run = async (script: readonly string[], more: object = {}) => {
      const request = { ...working, ...confined, ...demo(...script), ...more };
      return JSON.parse(await (await server.post("/run", request)).text());
    };
    const paused = await run(["write dist/a.txt 1", "run true"], {
      permissions: { default: "ask", rules: [{ pattern: "write", permission: "allow" }] },
      sessionId: "paused",
    });
    expect(paused).toMatchObject({ ok: true, stopReason: "paused" });
    expect(paused.receipt.outputs.files).toMatchObject([{ path: "dist/a.txt" }]);
    const failed = await run(["write dist/b.txt 1", "fail no luck"]);
    expect(failed).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
    expect(failed.receipt.outputs.files).toMatchObject([{ path: "dist/b.txt" }]);
    const without = await run(["say hi"], { outputs: undefined });
    expect((await fetch(`${server.url}/runs/${without.runId}/files`)).status).toBe(404);
  });

  it("are there of what it made until it was cancelled", async () => {
    const server = await serve({ AMBIT_BLOBS_FOLDER: await emptyFolder() });
    const script = demo("write dist/a.txt 1", "say at work", "sleep 60000");
    const response = await server.post("/run", { ...working, ...confined, ...script }, ndjson);
    const records = recordsOf(response);
    await readUntil(records, isMessage("at work"));
    await server.post(`/runs/${response.headers.get("x-ambit-run-id")}/cancel`, "");
    const result = await resultOf(records);
    expect(result.receipt?.outputs).toMatchObject({
      files: [{ path: "dist/a.txt" }],
      patch: { changes: [{ change: "added", path: "dist/a.txt" }] },
    });
  });

  it("need a workspace and something to ask for", async () => {
    const plan = async (more: object) => {
      const { stdout } = await ambit(["plan", "--json", "-"], { input: { ...demo("say hi"), ...more } });
      return JSON.parse(stdout).failure?.issues;
    };
    expect(await plan({ outputs: {} })).toEqual([
      { path: "outputs", message: "must ask for something: set include or patch" },
    ]);
    expect(await plan({ outputs: { patch: true }, sandboxPermission: { filesystem: "off" } })).toEqual([
      { path: "outputs", message: expect.stringContaining('sandboxPermission.filesystem is "off"') },
    ]);
    expect(await plan({ outputs: { include: ["../x"] } })).toMatchObject([{ path: "outputs.include[0]" }]);
  });
});
