// needs: docker
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyImage, dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { demo, type Server, startServer } from "../support/ambit.js";
import { imageChoice } from "../support/configurations.js";

const missing = unavailableReason("runc");

describeUnless(missing)("the image of a request", { timeout: 120_000 }, () => {
  const tag = `${process.pid}`;
  const other = `ambit-test-choice:${tag}`;
  let folder: string;
  let removeImage: () => Promise<void>;
  let server: Server;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-e2e-image-"));
    const { socket, image } = dockerEngine();
    // The same files under another name, with a `PATH` that shows which one it is.
    const change = "ENV PATH=/usr/local/bin:/usr/bin:/bin:/of-the-other-image";
    removeImage = await copyImage("ambit-test-choice", tag, change);
    server = await startServer(
      {
        TEST_DOCKER_SOCKET: socket,
        TEST_DOCKER_IMAGE: image,
        TEST_DOCKER_OTHER: other,
        TEST_DOCKER_DATA: folder,
      },
      imageChoice,
    );
  }, 120_000);
  afterAll(async () => {
    server.process.kill("SIGTERM");
    await server.exit;
    await removeImage();
    await rm(folder, { recursive: true, force: true });
  });

  const closed = { network: "off", filesystem: "workspace" };
  async function run(more: object) {
    const body = { ...demo("run echo $PATH", "say done"), sandboxPermission: closed, ...more };
    const result = JSON.parse(await (await server.post("/run", body)).text());
    const ended = (result.events ?? []).find(({ type }: { type: string }) => type === "tool_result");
    return { result, printed: String(ended?.output) };
  }

  it("decides which backend it gets, with and without commands", async () => {
    const first = await run({});
    expect(first.result, server.log()).toMatchObject({ ok: true, receipt: { sandbox: "first" } });
    expect(first.printed).not.toContain("of-the-other-image");

    const asked = await run({ environment: { image: other } });
    expect(asked.result, server.log()).toMatchObject({ ok: true, output: "done" });
    expect(asked.printed).toContain("of-the-other-image");
    expect(asked.result.receipt.environment).toBeUndefined();

    const setup = ["printf '%s' \"$PATH\" > path"];
    const prepared = await run({ ...demo("run cat path", "say done"), environment: { image: other, setup } });
    expect(prepared.result, server.log()).toMatchObject({ ok: true });
    expect(prepared.printed).toContain("of-the-other-image");
  });

  it("is refused with those that are configured, and with a field that only commands use", async () => {
    const issuesOf = async (environment: object, more: object = {}) => {
      const body = { ...demo("say hi"), sandboxPermission: closed, environment, ...more };
      return JSON.parse(await (await server.post("/plan", body)).text()).failure.issues;
    };
    expect(await issuesOf({ image: "python:3" })).toEqual([
      { path: "environment.image", message: expect.stringContaining(`${other} (second)`) },
    ]);
    expect(await issuesOf({ image: other }, { sandbox: "first" })).toEqual([
      { path: "environment.image", message: expect.stringContaining("(first)") },
    ]);
    expect(await issuesOf({ image: other, env: { A: "1" } })).toEqual([
      { path: "environment.setup", message: expect.stringContaining("must have a command") },
    ]);
    expect(await issuesOf({ image: "$(id)" })).toEqual([
      expect.objectContaining({ path: "environment.image" }),
    ]);
  });
});
