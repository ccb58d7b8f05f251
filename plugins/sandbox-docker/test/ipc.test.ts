import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "@ambit/backend-kit";
import { unavailableReason } from "@ambit/docker-engine";
import { expect, it, onTestFinished } from "vitest";
import { configSchema, DockerSandbox } from "../src/index.js";
import { scope, settingsFor, specOf } from "./support/on-engine.js";

const reason = unavailableReason("runc");

/** A segment that every user may open, and a message queue. `0` is the exit code of one that could be made. */
const leave = `
import ctypes
libc = ctypes.CDLL(None)
print(libc.shmget(0x4d123456, 4096, 0o1666) >= 0, libc.mq_open(b"/left", 0o102, 0o666, None) >= 0)
`;
const look = `
import ctypes, os
libc = ctypes.CDLL(None)
print(libc.shmget(0x4d123456, 0, 0) >= 0, os.listdir("/dev/mqueue"))
`;

it("keeps no memory segment and no message queue of a tool that has ended", async (context) => {
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-ipc-"));
  const backend = new DockerSandbox(
    configSchema.parse({ ...settingsFor("runc", dataFolder), deployment: "ipc" }),
  );
  const sandbox = await backend.open(specOf({ network: { mode: "off", rules: [] } }), scope);
  onTestFinished(async () => {
    await sandbox.close();
    await backend.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });
  const run = async (program: string) => {
    const argv = ["/usr/bin/python3", "-c", program] as const;
    return (await runToEnd(sandbox, { argv, env: { PATH: "/usr/bin:/bin" } })).stdout;
  };
  expect(await run(leave)).toBe("True True\n");
  await expect.poll(() => run(look), { timeout: 20_000 }).toBe("False []\n");
});
