import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openBridged, textOf } from "./support/bridged.js";
import { ExecPlatform, inKernelPipes } from "./support/exec-platform.js";

const size = 8_000_000;
const kernelPipes = (folder: string) => new ExecPlatform(folder, inKernelPipes);

/** Bytes that the process at the pipe's end has read so far. */
function readByAttachment(folder: string): number {
  const found = readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return argv[3] === "attach-bytes" && argv.includes(folder);
    } catch {
      return false;
    }
  });
  expect(found).toHaveLength(1);
  return Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${found[0]}/io`, "utf8"))?.[1]);
}

describe("a pipe that the guest daemon takes over", () => {
  it.each([
    { title: "goes past the process at its end", platform: kernelPipes, passed: false },
    {
      title: "goes through that process where it can't be opened again",
      platform: (folder: string) => new ExecPlatform(folder),
      passed: true,
    },
  ])("$title", async ({ platform, passed }) => {
    await using bridged = await openBridged({ binary: true, platform });
    const before = readByAttachment(bridged.folder);
    const child = await bridged.sandbox.spawn({
      argv: ["/usr/bin/head", "-c", `${size}`, "/dev/zero"],
      env: {},
    });
    expect(Buffer.byteLength(await textOf(child.stdout))).toBe(size);
    const read = readByAttachment(bridged.folder) - before;
    if (passed) expect(read).toBeGreaterThan(size);
    else expect(read).toBeLessThan(1_000);
  });

  it("loses and repeats nothing when it is cut again and again", { timeout: 60_000 }, async () => {
    await using bridged = await openBridged({ binary: true, platform: kernelPipes });
    const { sandbox, platform, failures } = bridged;
    const count = 300_000;
    const argv = ["/bin/sh", "-c", `seq ${count} & seq ${count} >&2; wait`] as const;
    const child = await sandbox.spawn({ argv, env: { PATH: "/usr/bin:/bin" } });
    let isRunning = true;
    const cutting = (async () => {
      for (let cuts = 0; cuts < 10 && isRunning; cuts += 1) {
        await after(20);
        platform.cut();
      }
    })();
    const echo = await sandbox.spawn({ argv: ["/bin/cat"], env: {} });
    const writer = echo.stdin.getWriter();
    const sent = Buffer.from(Array.from({ length: 200_000 }, (_, index) => `${index}\n`).join(""));
    const writing = (async () => {
      for (let at = 0; at < sent.length; at += 10_000) await writer.write(sent.subarray(at, at + 10_000));
      await writer.close();
    })();
    const [output, errors, echoed] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      textOf(echo.stdout),
      writing,
    ]);
    isRunning = false;
    await cutting;
    const expected = Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");
    expect(output === expected).toBe(true);
    expect(errors === expected).toBe(true);
    expect(echoed === sent.toString("latin1")).toBe(true);
    expect(platform.opened).toBeGreaterThan(1);
    expect(failures).toEqual([]);
  });

  it("is never another process's: a number alone doesn't name one", async () => {
    await using bridged = await openBridged({ binary: true, platform: kernelPipes });
    const sleeper = await bridged.sandbox.spawn({ argv: ["/bin/sh", "-c", "sleep 60 | cat"], env: {} });
    const offers = [`ambit pipes ${process.pid} 0:1 0:2\n`, "ambit pipes ../1 0:1 0:2\n", "ambit pipes 1\n"];
    for (const offer of offers) {
      const socket = connect(join(bridged.folder, "bridge.sock"));
      socket.write(offer);
      const [answer]: Buffer[] = await new Promise((resolve) =>
        socket.once("data", (bytes) => resolve([bytes])),
      );
      // Refused, and then spoken to as one that passes bytes on.
      expect(answer?.[0]).toBe(2);
      socket.destroy();
    }
    await sleeper.kill();
  });
});
