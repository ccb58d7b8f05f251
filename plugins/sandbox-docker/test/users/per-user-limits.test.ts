// needs: docker
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "@ambit/backend-kit";
import type { Sandbox } from "@ambit/core/plugin";
import { unavailableReason } from "@ambit/docker-engine";
import { describe, expect, it, onTestFinished } from "vitest";
import { describeUnless } from "../../../../scripts/vitest/skip-without.ts";
import { configSchema, DockerSandbox } from "../../src/index.js";
import { ownFirstUser } from "../../src/open/container-options.js";
import { scope, settingsFor, specOf } from "../support/on-engine.js";

describe("the user ids of a sandbox", () => {
  it("are its own, and those of its layer's other sandboxes", () => {
    const of = (name: string) => ownFirstUser({ name: name.repeat(64) });
    expect(of("a")).toBe(of("a"));
    expect(of("a")).not.toBe(of("b"));
    const many = Array.from({ length: 100 }, () => ownFirstUser(undefined));
    expect(new Set(many).size).toBeGreaterThan(95);
    expect(many.every((user) => user % 4_096 === 0 && user >= 0x7000_0000)).toBe(true);
    expect(Math.max(...many) + 4_096).toBeLessThanOrEqual(2 ** 31);
  });
});

describeUnless(unavailableReason())("on a real engine", () => {
  /** Takes all inotify instances and large pipes that its user may have, says how many, and keeps them. */
  const taking = `
import ctypes, fcntl, os, sys, time
libc, watches, pipes = ctypes.CDLL(None), 0, []
while libc.inotify_init() >= 0: watches += 1
try:
    while len(pipes) < 1000:
        pipes.append(os.pipe())
        fcntl.fcntl(pipes[-1][1], 1031, 1 << 20)
except OSError: pass
print("some" if watches > 0 else "no", "watches,", "some" if len(pipes) > 1 else "no", "pipes", flush=True)
time.sleep(float(sys.argv[1]))`;
  const command = (seconds: number) =>
    ({
      argv: ["python3", "-c", taking, `${seconds}`],
      env: { PATH: "/usr/bin:/bin" },
      role: "agent",
    }) as const;
  const take = async (sandbox: Sandbox) => (await runToEnd(sandbox, command(0))).stdout;

  it("no sandbox takes what the kernel counts for each user from another", async () => {
    const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-users-"));
    onTestFinished(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
    const backend = new DockerSandbox(configSchema.parse(settingsFor("runc", dataFolder)));
    const open = async () => {
      const sandbox = await backend.open(specOf({ network: { mode: "off", rules: [] } }), scope);
      onTestFinished(() => sandbox.close());
      return sandbox;
    };
    const [one, other] = [await open(), await open()];
    const holder = await one.spawn(command(600));
    onTestFinished(() => holder.kill());
    const { value } = await holder.stdout[Symbol.asyncIterator]().next();
    expect(Buffer.from(value ?? []).toString()).toBe("some watches, some pipes\n");
    // The control: in its own sandbox, nothing is left.
    expect(await take(one)).toBe("no watches, no pipes\n");
    expect(await take(other)).toBe("some watches, some pipes\n");
  });

  it("no sandbox takes all terminals of the host", async () => {
    const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-terminals-"));
    onTestFinished(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));
    const backend = new DockerSandbox(configSchema.parse(settingsFor("runc", dataFolder)));
    const sandbox = await backend.open(specOf({ network: { mode: "off", rules: [] } }), scope);
    onTestFinished(() => sandbox.close());
    const opening = `
import os
names = []
try:
    while len(names) < 500: names.append(os.ttyname(os.openpty()[1]))
except OSError as error: print(error.strerror)
print(len(names), names[0])`;
    const { stdout, stderr } = await runToEnd(sandbox, {
      argv: ["python3", "-c", opening],
      env: { PATH: "/usr/bin:/bin" },
      role: "agent",
    });
    expect(stdout + stderr).toBe("No space left on device\n64 /dev/pts/0\n");
  });
});
