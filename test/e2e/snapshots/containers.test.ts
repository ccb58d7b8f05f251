import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { expect, it } from "vitest";
import { demo, emptyFolder, repository, serve } from "../support/ambit.js";
import { containers } from "../support/configurations.js";

it("a session in a container is forked into another; not on another backend", {
  timeout: 240_000,
}, async (context) => {
  if (process.env.AMBIT_SOAK === undefined) context.skip("host: this takes minutes: set AMBIT_SOAK=1");
  const missing = unavailableReason("runc");
  if (missing !== undefined) context.skip(`host: ${missing}`);
  const { socket, image } = dockerEngine();
  const server = await serve(
    {
      TEST_DOCKER_SOCKET: socket,
      TEST_DOCKER_IMAGE: image,
      TEST_DOCKER_RUNTIMES: "runc",
      TEST_DOCKER_DATA: await emptyFolder(),
      TEST_DOCKER_FOLDER: repository,
    },
    containers,
  );
  const run = async (request: object) => {
    const sandboxPermission = { network: "off", filesystem: "workspace" };
    const text = await (await server.post("/run", { sandbox: "runc", sandboxPermission, ...request })).text();
    return JSON.parse(text);
  };
  const begun = await run({ ...demo("write app.txt one", "say begun"), sessionId: "in-a-container" });
  expect(begun, server.log()).toMatchObject({ ok: true, output: "begun" });
  const response = await server.post("/sessions/in-a-container/snapshot", "");
  const { id, sandbox, sha256 } = JSON.parse(await response.text());
  expect([response.status, sandbox]).toEqual([201, "runc"]);
  const fork = await run({ ...demo("run cat app.txt", "recall"), fork: { snapshot: id } });
  expect(fork, server.log()).toMatchObject({
    ok: true,
    receipt: { fork: { snapshot: id, sha256 }, session: { history: "loaded" } },
  });
  expect(JSON.stringify(fork.events)).toContain("one");
  const elsewhere = await run({ ...demo("say x"), sandbox: "local", fork: { snapshot: id } });
  expect(elsewhere.failure).toMatchObject({ code: "snapshot_failed" });
  expect(elsewhere.error).toContain('sandbox: "runc"');
});
