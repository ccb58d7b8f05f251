// needs: docker
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { runToEnd } from "@ambit/backend-kit";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import Docker from "dockerode";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { describeUnless } from "../../../scripts/vitest/skip-without.ts";
import { fixFor } from "../src/engine/engine.js";
import { configSchema, type DockerConfig, DockerSandbox } from "../src/index.js";
import { buildImage } from "./support/built-image.js";
import { EngineProxy } from "./support/engine-proxy.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

const deployment = `image-${process.pid}`;
const hostile = `ambit-test-hostile:${process.pid}`;
const workspaceOnly = {
  network: { mode: "off", rules: [] },
  filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
} as const;

/** What an image may declare, to its own ends or by accident. */
const declarations = [
  "RUN mkdir -m 1777 /data && echo 'dev:x:1000:1000::/:/bin/sh' >> /etc/passwd",
  "VOLUME /data",
  "ENV LD_PRELOAD=/data/evil.so NODE_OPTIONS=--require=/data/evil.cjs",
  'ENTRYPOINT ["/bin/false"]',
  "HEALTHCHECK --interval=1s CMD id -u > /data/health",
  "STOPSIGNAL SIGUSR1",
  `LABEL ambit=sandbox ambit-deployment=${deployment} ambit-replica=gone-gone ambit-session=fake ambit-expires=1`,
  "LABEL ambit-unknown=1",
  "USER dev",
];

describeUnless(unavailableReason())("an image of one's own", () => {
  let folder: string;
  let docker: Docker;
  /** A second attempt at a test makes the same one again. */
  const made = new Set<string>();
  const image = async (name: string, lines: readonly string[]) => {
    made.add(name);
    await buildImage(name, lines);
  };
  beforeAll(async () => {
    docker = new Docker({ socketPath: dockerEngine().socket });
    folder = await mkdtemp(join(tmpdir(), "ambit-docker-image-"));
    await image(hostile, declarations);
  }, 60_000);
  afterAll(async () => {
    for (const name of made) await docker.getImage(name).remove({ force: true });
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const configWith = (settings: object) =>
    configSchema.parse({ ...settingsFor("runc", folder), deployment, ...settings });
  const backendWith = (settings: object) => new DockerSandbox(configWith(settings));

  /** A container that isn't ours, with the same image. */
  async function plain(name: string, options: Docker.ContainerCreateOptions = {}) {
    const container = await docker.createContainer({
      name,
      Image: hostile,
      Entrypoint: ["/bin/sleep", "60"],
      User: "1000",
      Env: ["LD_PRELOAD="],
      HostConfig: { ReadonlyRootfs: true, NetworkMode: "none" },
      ...options,
    });
    onTestFinished(async () => {
      await container.remove({ force: true, v: true }).catch(() => undefined);
    });
    await container.start();
    return container;
  }

  it("opens no way around a boundary by what it declares", async () => {
    const sandbox = await backendWith({ image: hostile }).open(specOf(workspaceOnly), scope);
    try {
      const control = await plain(`plain-${process.pid}`);
      const read = async (argv: readonly string[]) => {
        const exec = await control.exec({ Cmd: [...argv], AttachStdout: true, Tty: true });
        return await text(await exec.start({}));
      };
      // The control: a volume that everyone may write to, and the image's command, which the engine runs.
      await expect.poll(() => read(["/bin/cat", "/data/health"]), { timeout: 10_000 }).toContain("1000");

      const script = "id -u; echo x > /data/mine; ls /data; echo x > mine && cat mine; env";
      const { stdout, stderr } = await runToEnd(sandbox, { argv: ["/bin/sh", "-c", script], env: {} });
      expect(stderr).toMatch(/\/data\/mine: Read-only file system/);
      expect(stdout).toMatch(/^(?:18|19|20|21)\d{8}\nx\n/);
      expect(stdout).not.toMatch(/evil|health/);
      const { Config } = await docker.getContainer(String(sandbox.evidence["docker.container"])).inspect();
      expect(Config.Healthcheck).toMatchObject({ Test: ["NONE"] });
    } finally {
      await sandbox.close();
    }
  });

  it.each([
    ["mount", "/bin/mount /usr/bin/setpriv"],
    ["setpriv", "/usr/bin/setpriv"],
  ])("loses at most environment.per-tool where it lacks %s", async (lacking, files) => {
    const name = `ambit-test-no-${lacking}:${process.pid}`;
    await image(name, [`RUN rm ${files}`]);
    const backend = backendWith({ image: name });
    const sandbox = await backend.open(specOf(workspaceOnly), scope);
    const hiding = sandbox.evidence["docker.hiding"];
    await sandbox.close();
    // An engine with all privileges needs no setpriv.
    if (hiding === "exec") return;
    expect(hiding).toBe("none");
    const opening = backend.open(specOf(workspaceOnly, { required: ["environment.per-tool"] }), scope);
    await expect(opening).rejects.toThrow(/environment.per-tool isn't possible in this sandbox/);
  });

  /** @returns its name; its `node` ends after a command like a shell that doesn't find it. */
  async function withoutNode(label: string, command: string): Promise<string> {
    const name = `ambit-test-no-node:${process.pid}-${label}`;
    const script = `printf '#!/bin/sh\\n${command}; exec node-of-this-image\\n' > node && chmod 755 node`;
    await image(name, [`RUN cd /usr/local/bin && rm node && ${command === "" ? "true" : script}`]);
    return name;
  }
  const fixOfOpening = async (config: DockerConfig) => {
    const opening = new DockerSandbox(config).open(specOf(workspaceOnly), scope);
    const error: unknown = await opening.catch((thrown: unknown) => thrown);
    return fixFor(error, config, "network.deny");
  };
  const fixWithoutNode = (name: string) =>
    `use an image with Node.js 18 or newer (${name} has none on its PATH), or set sandbox-docker's bridge.node`;

  // The container ends at different moments of its opening.
  it.each([0, 10, 40, 100])(
    "is refused with a fix where it lacks Node.js, noticed after %d ms",
    async (ms) => {
      const name = await withoutNode(`${ms}`, ms === 0 ? "" : `sleep ${ms / 1_000}`);
      expect(await fixOfOpening(configWith({ image: name }))).toBe(fixWithoutNode(name));
    },
  );

  it("is refused with the same fix where the shell's message is lost with its connection", async () => {
    const name = await withoutNode("lost", "head -c 1 > /dev/null");
    const proxy = new EngineProxy(folder);
    await proxy.open();
    onTestFinished(() => proxy.close());
    // The guest daemon's program, on its way to the first command.
    proxy.dropNext(/process\.umask/);
    const fix = await fixOfOpening(configWith({ image: name, engine: proxy.address }));
    expect(proxy.hasDropped).toBe(true);
    expect(fix).toBe(fixWithoutNode(name));
  });

  it("is refused with a fix once it is removed, and the session that it has runs on", async () => {
    const name = `ambit-test-removed:${process.pid}`;
    const tag = await buildImage(name, ["LABEL ambit-removed=1"]);
    const backend = backendWith({ image: name, deployment: `${deployment}-removed` });
    const sandbox = await backend.open(specOf(workspaceOnly), scope);
    try {
      // As an operator's clean-up does between a plan and its run.
      await tag.remove({ force: true });
      await expect(backend.open(specOf(workspaceOnly), scope)).rejects.toMatchObject({
        name: "SandboxFailed",
        message: expect.stringMatching(/No such image: .*: pull it, set sandbox-docker's pull to "missing"/),
      });
      const { stdout } = await runToEnd(sandbox, { argv: ["/bin/echo", "runs"], env: {} });
      expect(stdout).toBe("runs\n");
    } finally {
      await sandbox.close();
    }
    const filters = { label: [`ambit-deployment=${deployment}-removed`] };
    // The engine lists a container that it removes until its files are gone.
    await expect.poll(() => docker.listContainers({ all: true, filters }), { timeout: 10_000 }).toEqual([]);
  });

  it("gives none of its containers to the reaper, whatever its labels say", async () => {
    const mine = await plain(`mine-${process.pid}`);
    const fake = await plain("ambit-fake-gone");
    const backend = backendWith({ reapMinutes: 0.005 });
    await (await backend.open(specOf({}), scope)).close();
    // The control: with a sandbox's name too, it is one.
    await expect.poll(() => fake.inspect().catch(() => "removed"), { timeout: 10_000 }).toBe("removed");
    expect((await mine.inspect()).State.Running).toBe(true);
    await backend.close();
  });
});
