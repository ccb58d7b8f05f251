import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import Docker from "dockerode";
import { describe, expect, it } from "vitest";
import { dockerEngine, unavailableReason } from "../src/index.js";

const execute = promisify(execFile);

interface Output {
  readonly code: number;
  readonly text: string;
}

/** Runs a command in a container of the shared engine. */
async function run(host: Docker.HostConfig, ...command: string[]): Promise<Output> {
  const { socket, image } = dockerEngine();
  const docker = new Docker({ socketPath: socket });
  const container = await docker.createContainer({ Image: image, Cmd: command, Tty: true, HostConfig: host });
  try {
    await container.start();
    const { StatusCode: code } = await container.wait();
    const text = String(await container.logs({ stdout: true, stderr: true }));
    return { code, text: text.trim() };
  } finally {
    await container.remove({ force: true });
  }
}

describe.each(["runc", "runsc"] as const)("a container of %s", (runtime) => {
  it("has the image's programs", async (context) => {
    const reason = unavailableReason(runtime);
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const script =
      "node -v && npm -v && python3 -V && git --version && command -v sh tar mount update-ca-certificates";
    const { code, text } = await run({ Runtime: runtime, NetworkMode: "none" }, "sh", "-c", script);
    expect(text).toMatch(/^v\d+[\s\S]*Python 3\.\d+[\s\S]*git version/);
    expect(code).toBe(0);
  });

  it("reaches the host's loopback with the host's network, and nothing with none", async (context) => {
    const reason = unavailableReason(runtime);
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const server = createServer((_, response) => response.end("reached")).listen(0, "127.0.0.1");
    try {
      await once(server, "listening");
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("it doesn't listen");
      const ask = [
        "node",
        "--eval",
        `fetch("http://127.0.0.1:${address.port}").then((r) => r.text()).then(console.log, (e) => console.log(e.cause.code))`,
      ];
      expect(await run({ Runtime: runtime, NetworkMode: "host" }, ...ask)).toEqual({
        code: 0,
        text: "reached",
      });
      const none = await run({ Runtime: runtime, NetworkMode: "none" }, ...ask);
      expect(none).toEqual({ code: 0, text: "ECONNREFUSED" });
    } finally {
      server.close();
    }
  });
});

/** A command line that no other process of the machine has. */
const marker = String(10_000_000 + process.pid);

/** Starts an engine with a container in another process, and prints where it is. */
const owner = `
  import Docker from "dockerode";
  import { startSmallEngine } from "../dist/index.js";
  const engine = await startSmallEngine();
  const docker = new Docker({ socketPath: engine.socket });
  const Binds = engine.mounts.map(({ source, target }) => source + ":" + target + ":ro");
  const HostConfig = { NetworkMode: "none", Binds };
  const command = { Image: engine.image, Cmd: ["/usr/bin/sleep", "${marker}"], HostConfig };
  await (await docker.createContainer(command)).start();
  console.log(engine.socket);
`;

const running = async (pattern: string) =>
  await execute("pgrep", ["-f", pattern]).then(
    ({ stdout }) => stdout.trim().split("\n").length,
    () => 0,
  );

describe("a separate engine", () => {
  it("ends with its owner, and the next start removes what is left", {
    timeout: 120_000,
  }, async (context) => {
    const reason = unavailableReason();
    if (reason !== undefined) context.skip(`host: ${reason}`);
    if (process.getuid?.() !== 0) context.skip("host: an engine of one's own needs root");
    const child = spawn(process.execPath, ["--input-type=module", "--eval", owner], {
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    let socket = "";
    for await (const line of createInterface(child.stdout)) {
      socket = line;
      break;
    }
    const folder = dirname(socket);
    expect(await running(`sleep ${marker}`)).toBe(1);
    child.kill("SIGKILL");
    await exited;
    await expect.poll(() => running(`sleep ${marker}`), { timeout: 20_000 }).toBe(0);
    await expect.poll(() => running(folder), { timeout: 20_000 }).toBe(0);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(folder);
    expect(existsSync(folder)).toBe(true);

    const { removeLeftovers } = await import("../src/leftovers.js");
    await removeLeftovers();
    expect(existsSync(folder)).toBe(false);
    const [, name = ""] = /(ambit-docker-[^/]+)/.exec(folder) ?? [];
    const groups = readdirSync("/sys/fs/cgroup", { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => [`/sys/fs/cgroup/${entry.name}`, `/sys/fs/cgroup/${entry.name}/${name}`])
      .filter((path) => path.endsWith(name));
    expect(name).not.toBe("");
    expect(groups.filter((path) => existsSync(path))).toEqual([]);
    // The shared one lives on.
    expect(await new Docker({ socketPath: dockerEngine().socket }).ping()).toBeTruthy();
  });
});
