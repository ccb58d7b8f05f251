import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeSpec } from "@ambit/backend-kit";
import type { SandboxFailed } from "@ambit/core/plugin";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import Docker from "dockerode";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { configSchema, DockerSandbox } from "../src/index.js";
import { settingsFor } from "./support/on-engine.js";

const reason = unavailableReason("runc");

/** A sandbox with a waiting process, and what its backend reports when it is lost. */
async function waiting() {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-lost-"));
  const settings = { ...settingsFor("runc", dataFolder), deployment: "lost" };
  const backend = new DockerSandbox(configSchema.parse(settings));
  const failures: SandboxFailed[] = [];
  const spec = probeSpec(
    { network: { mode: "off", rules: [] }, resources: { memoryMb: 128 } },
    { onFailure: (failure) => failures.push(failure) },
  );
  const scope = { signal: new AbortController().signal, defer: () => undefined };
  const sandbox = await backend.open(spec, scope);
  onTestFinished(async () => {
    await sandbox.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });
  const engine = new Docker({ socketPath: dockerEngine().socket });
  const container = engine.getContainer(String(sandbox.evidence["docker.container"]));
  const child = await sandbox.spawn({ argv: ["/bin/sleep", "600"], env: {} });
  return { sandbox, container, child, failures };
}

describe("a sandbox that is lost during a run", () => {
  beforeEach((context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
  });

  it.each([
    [
      "is stopped",
      async (one: Docker.Container) => one.kill(),
      /doesn't run any more \(exited, exit code 137\)/,
    ],
    ["is removed", async (one: Docker.Container) => one.remove({ force: true }), /was removed|doesn't run/],
  ])("ends every stream, and says that its container %s", async (_what, end, words) => {
    const { sandbox, container, child, failures } = await waiting();
    await end(container);
    await expect(child.exit).resolves.toEqual({ code: null, signal: "SIGKILL" });
    expect(failures.map(({ message }) => message)).toEqual([expect.stringMatching(words)]);
    await expect(sandbox.spawn({ argv: ["/bin/true"], env: {} })).rejects.toThrow("lost");
  });

  it("reports that only its pipe ended if the container still runs", async () => {
    const { container, child, failures } = await waiting();
    const kill = await container.exec({
      Cmd: [
        "/bin/sh",
        "-c",
        'for one in /proc/[0-9]*; do grep -qa bridge[.]mjs "$one/cmdline" && kill -9 "$(basename $one)"; done',
      ],
      User: "0:0",
      AttachStdout: true,
    });
    await kill.start({});
    await child.exit;
    expect(failures.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The sandbox can't be reached any more/),
    ]);
  });
});
