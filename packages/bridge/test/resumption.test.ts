import { createHash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as after } from "node:timers/promises";
import { SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { CuttingPlatform, openBridged, textOf } from "./support/bridged.js";

/** Answers each line with three notices and a result, all numbered. */
const responder = `
let n = 0;
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, pad } = JSON.parse(line);
  for (let i = 0; i < 3; i++) console.log(JSON.stringify({ n: n++, update: i, of: id, pad }));
  console.log(JSON.stringify({ n: n++, result: id }));
});
lines.on("close", () => { process.exitCode = 7; });
`;

/** The same numbers each time: a failure can be looked at again. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe.each([
  { pipes: "pipes of lines", binary: false },
  { pipes: "pipes of bytes", binary: true },
])("a bridge over breaking $pipes", ({ binary }) => {
  it("loses nothing, repeats nothing and keeps the order over a thousand interruptions", {
    timeout: 120_000,
  }, async () => {
    const requests = 300;
    const cuts = 1_000;
    const random = numbers(42);
    await using bridged = await openBridged({ binary, platform: (folder) => new CuttingPlatform(folder) });
    const { sandbox, platform, failures } = bridged;
    if (!(platform instanceof CuttingPlatform)) throw new Error("another platform");
    const child = await sandbox.spawn({ argv: [process.execPath, "-e", responder], env: {} });
    platform.cutAfter = () => (platform.cuts < cuts ? 150 + Math.floor(random() * 6_000) : undefined);
    platform.cut();

    const answers: { n: number; result?: number; of?: number }[] = [];
    const reading = (async () => {
      let rest = "";
      for await (const piece of child.stdout) {
        const lines = (rest + Buffer.from(piece).toString("utf8")).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) answers.push(JSON.parse(line));
      }
    })();
    // All in flight at once: 300 requests and, in the end, 1,200 frames of answers.
    const writer = child.stdin.getWriter();
    const pad = "☃ and some text ".repeat(150);
    for (let id = 0; id < requests; id++) {
      await writer.write(Buffer.from(`${JSON.stringify({ id, pad })}\n`));
    }
    await writer.close();
    await reading;

    await expect(child.exit).resolves.toEqual({ code: 7, signal: null });
    expect(answers.map(({ n }) => n)).toEqual(Array.from({ length: requests * 4 }, (_, index) => index));
    expect(answers.flatMap(({ result }) => result ?? [])).toEqual(
      Array.from({ length: requests }, (_, index) => index),
    );
    expect(failures).toEqual([]);
    expect(platform.cuts).toBeGreaterThanOrEqual(cuts);
  });

  it("carries a message of 16 MB in one line both ways, even if the pipe breaks in its middle", async () => {
    await using bridged = await openBridged({ binary, platform: (folder) => new CuttingPlatform(folder) });
    const { sandbox, platform } = bridged;
    if (!(platform instanceof CuttingPlatform)) throw new Error("another platform");
    platform.cutAfter = () => (platform.cuts < 5 ? 3_000_000 : undefined);
    platform.cut();
    const line = Buffer.from(`${randomBytes(8 * 2 ** 20).toString("hex")}\n`);
    const child = await sandbox.spawn({ argv: ["/bin/cat"], env: {} });
    const writer = child.stdin.getWriter();
    const [back] = await Promise.all([textOf(child.stdout), writer.write(line).then(() => writer.close())]);
    expect(digest(back)).toBe(digest(line));
    expect(platform.cuts).toBe(5);
  });

  it("pauses a writer whose reader is slow, and continues where it stopped", async () => {
    await using bridged = await openBridged({ binary });
    const { sandbox } = bridged;
    const size = 8 * 2 ** 20;
    const progress = `${sandbox.workspace}/written`;
    const pour = `
      const { writeFileSync, writeSync } = require("node:fs");
      let written = 0;
      writeFileSync(${JSON.stringify(progress)}, "0");
      while (written < ${size}) {
        written += writeSync(1, Buffer.alloc(65536, 120));
        writeFileSync(${JSON.stringify(progress)}, String(written));
      }`;
    const child = await sandbox.spawn({ argv: [process.execPath, "-e", pour], env: {} });
    const reader = child.stdout.getReader();
    await reader.read();
    const written = await settled(async () => Number(await readFile(progress, "utf8")));
    // Two windows, a pipe's buffer and what Node holds: nothing that grows with what is written.
    expect(written).toBeLessThan(2 * 2 ** 20);
    reader.releaseLock();
    let length = 0;
    for await (const piece of child.stdout) length += piece.length;
    expect(length).toBeGreaterThan(size - 2 ** 20);
    expect((await child.exit).code).toBe(0);
  });

  it("replaces a pipe at its byte limit, without interruption", async () => {
    await using bridged = await openBridged({ binary, bridge: { pipeBytes: 200_000 } });
    const { sandbox, platform } = bridged;
    const child = await sandbox.spawn({ argv: ["/bin/cat"], env: {} });
    const writer = child.stdin.getWriter();
    const sent = createHash("sha256");
    const come = createHash("sha256");
    const reading = (async () => {
      for await (const piece of child.stdout) come.update(piece);
    })();
    // Streams go on while the next pipe is opened.
    while (platform.opened <= 5) {
      const bytes = randomBytes(50_000);
      sent.update(bytes);
      await writer.write(bytes);
    }
    await writer.close();
    await reading;
    expect(come.digest("hex")).toBe(sent.digest("hex"));
    // The platform logs what it carries for as long as the command lives: no older one is left.
    await expect.poll(() => platform.pipes.size).toBe(1);
  });

  it("reports running processes as lost when the guest daemon is killed", async () => {
    await using bridged = await openBridged({ binary });
    const { sandbox, failures, platform, folder } = bridged;
    const child = await sandbox.spawn({ argv: ["/bin/sleep", "600"], env: {} });
    await killBridge(folder);
    platform.cut();
    await expect(child.exit).resolves.toEqual({ code: null, signal: "SIGKILL" });
    await settled(async () => failures.length);
    expect(failures).toEqual([expect.any(SandboxFailed)]);
    expect(failures[0]?.message).toContain("killed");
    await expect(sandbox.spawn({ argv: ["/bin/true"], env: {} })).rejects.toThrow(SandboxFailed);
    process.kill(Number(child.evidence.pid), "SIGKILL");
  });

  it("fails a sandbox that is unreachable for too long, with the platform's own message", async () => {
    await using bridged = await openBridged({ binary, bridge: { reconnectTimeoutMs: 300 } });
    const { sandbox, failures, platform } = bridged;
    const child = await sandbox.spawn({ argv: ["/bin/sleep", "600"], env: {} });
    platform.refuseWith = new Error("the gateway answers 503");
    platform.cut();
    await child.exit;
    expect(failures.map(({ message }) => message)).toEqual([
      expect.stringContaining("the gateway answers 503"),
    ]);
  });

  it("doesn't retry after the platform reported that the sandbox is gone", async () => {
    await using bridged = await openBridged({ binary });
    const { failures, platform } = bridged;
    const gone = new SandboxFailed("The sandbox was stopped");
    platform.refuseWith = gone;
    platform.cut();
    await settled(async () => failures.length);
    expect(failures).toEqual([gone]);
  });

  it("ends processes inside if the runner doesn't reconnect", async () => {
    await using bridged = await openBridged({
      binary,
      bridge: { orphanTimeoutMs: 200, reconnectTimeoutMs: 1_000 },
    });
    const { sandbox, platform } = bridged;
    const child = await sandbox.spawn({ argv: ["/bin/sleep", "600"], env: {} });
    const pid = Number(child.evidence.pid);
    expect(isAlive(pid)).toBe(true);
    platform.refuseWith = new Error("The runner is gone");
    platform.cut();
    await settled(async () => isAlive(pid));
    expect(isAlive(pid)).toBe(false);
  });
});

function digest(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** A value that hasn't changed for a while. */
async function settled<Value>(read: () => Promise<Value>): Promise<Value> {
  let last = await read();
  for (let same = 0; same < 6; ) {
    await after(100);
    const next = await read();
    same = next === last ? same + 1 : 0;
    last = next;
  }
  return last;
}

async function killBridge(folder: string): Promise<void> {
  const { readdirSync, readFileSync } = await import("node:fs");
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    let line = "";
    try {
      line = readFileSync(`/proc/${name}/cmdline`, "utf8");
    } catch {
      continue;
    }
    if (/serve(-bytes)?$/.test(line.split(`\0${folder}\0`)[0] ?? "") && line.includes(`\0${folder}\0`))
      process.kill(Number(name), "SIGKILL");
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
