import { createHash, randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { openBridged, textOf } from "./support/bridged.js";
import { eventually, processesWith } from "./support/processes.js";

const MB = 2 ** 20;
const digest = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");
const mark = () => `mark-${randomBytes(12).toString("hex")}`;
/** Stays for minutes, and shows the mark in its arguments. */
const staying = (text: string) =>
  ({ argv: [process.execPath, "-e", "setTimeout(() => {}, 120_000)", text], env: {} }) as const;

const pipes = [
  { over: "the bridge", direct: false },
  { over: "one direct pipe", direct: true },
];

describe.each(pipes)("processes over $over", ({ direct }) => {
  it("are reported as ended although their output wasn't read", async () => {
    await using bridged = await openBridged({ direct });
    const pour = `process.stdout.write(Buffer.alloc(${4 * MB}, 120)); setTimeout(() => process.exit(9), 300);`;
    const child = await bridged.sandbox.spawn({ argv: [process.execPath, "-e", pour], env: {} });
    await expect(child.exit).resolves.toEqual({ code: 9, signal: null });
    // And what they wrote in time is still there.
    expect((await textOf(child.stdout)).length).toBeGreaterThan(100_000);
    const other = await bridged.sandbox.spawn({ argv: [process.execPath, "-e", pour], env: {} });
    await other.kill();
    await expect(other.exit).resolves.toMatchObject({ signal: "SIGKILL" });
  });

  it("leave all that they wrote, in order, to a reader who comes after their end", async () => {
    await using bridged = await openBridged({ direct });
    // More than the window: the rest waits in the pipe that the daemon reads, whose writer is gone.
    const count = 100_000;
    const argv = ["/usr/bin/seq", "1", `${count}`] as const;
    const child = await bridged.sandbox.spawn({ argv, env: {} });
    await child.exit;
    const numbers = Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");
    expect(digest(await textOf(child.stdout))).toBe(digest(numbers));
  });

  it("are ended before the daemon if memory runs out, from their first moment", async () => {
    await using bridged = await openBridged({ direct });
    // The daemon returns to its own score after the program has started.
    const script = `read own </proc/self/oom_score_adj
      while read daemons </proc/$PPID/oom_score_adj && [ $daemons = 900 ]; do sleep 0.01; done
      echo $own $daemons`;
    const child = await bridged.sandbox.spawn({ argv: ["/bin/sh", "-c", script], env: {} });
    const [own, daemons] = (await textOf(child.stdout)).split(" ").map(Number);
    expect(own).toBe(900);
    expect(daemons).toBeLessThan(900);
  });

  it("may close their standard input while it is written to", async () => {
    await using bridged = await openBridged({ direct });
    const script = "exec <&-; sleep 0.3; echo done; exit 5";
    const child = await bridged.sandbox.spawn({
      argv: ["/bin/sh", "-c", script],
      env: { PATH: "/usr/bin:/bin" },
    });
    const writer = child.stdin.getWriter();
    const writing = (async () => {
      for (let time = 0; time < 64; time++) await writer.write(Buffer.alloc(65_536));
      await writer.close();
    })();
    // It may fail because nothing reads any more, but it never waits indefinitely.
    await writing.catch((error: unknown) => expect(error).toBeInstanceOf(SandboxFailed));
    expect(await textOf(child.stdout)).toBe("done\n");
    await expect(child.exit).resolves.toEqual({ code: 5, signal: null });
  });

  it("pass on binary data, and arguments with special characters", async () => {
    await using bridged = await openBridged({ direct });
    const { sandbox } = bridged;
    const bytes = Buffer.concat([
      randomBytes(300_000),
      Buffer.from([0, 0xff, 0xfe, 0x80, 0xc3, 0x28, 10, 13]),
    ]);
    const child = await sandbox.spawn({ argv: ["/bin/cat"], env: {} });
    const writer = child.stdin.getWriter();
    const writing = writer.write(bytes).then(() => writer.close());
    const pieces: Uint8Array[] = [];
    for await (const piece of child.stdout) pieces.push(piece);
    await writing;
    expect(digest(Buffer.concat(pieces))).toBe(digest(bytes));
    const words = ["", "a\nb", "\u2028 ☃ \u{1f600}", "__proto__", "--", "\t\u0001", "x".repeat(60_000)];
    const echo = "process.stdout.write(JSON.stringify(process.argv.slice(1)))";
    const said = await sandbox.spawn({ argv: [process.execPath, "-e", echo, "--", ...words], env: {} });
    expect(JSON.parse(await textOf(said.stdout))).toEqual(words);
  });

  // What is left of each doesn't depend on the pipe.
  const many = direct ? 200 : 1_000;
  it(`leave nothing after ${many} short ones`, { timeout: 120_000 }, async () => {
    await using bridged = await openBridged({ direct });
    const { sandbox, folder } = bridged;
    let next = 0;
    const codes: (number | null)[] = [];
    const work = async () => {
      while (next < many) {
        const code = next++ % 200;
        const child = await sandbox.spawn({ argv: ["/bin/sh", "-c", `echo ${code}; exit ${code}`], env: {} });
        const [said, exit] = await Promise.all([textOf(child.stdout), child.exit]);
        expect(said).toBe(`${code}\n`);
        expect(exit.code).toBe(code);
        codes.push(exit.code);
      }
    };
    await Promise.all(Array.from({ length: 20 }, work));
    expect(codes).toHaveLength(many);
    expect(await readdir(join(folder, "processes"))).toEqual([]);
  });

  it("that are aborted before they start leave nothing", async () => {
    await using bridged = await openBridged({ direct });
    const text = mark();
    const reason = new Error("no longer wanted");
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async (_, number) => {
        const abort = new AbortController();
        const spawning = bridged.sandbox.spawn({ ...staying(text), signal: abort.signal });
        setTimeout(() => abort.abort(reason), number);
        return spawning.then(
          ({ exit }) => exit,
          (error: unknown) => error,
        );
      }),
    );
    for (const outcome of outcomes)
      expect([reason, { code: null, signal: "SIGKILL" }]).toContainEqual(outcome);
    // Those that are given up first may not even have been started yet.
    let quietLooks = 0;
    const look = () => {
      quietLooks = processesWith(text).length === 0 ? quietLooks + 1 : 0;
      return quietLooks;
    };
    await eventually(look, (looks) => looks >= 20);
    expect(processesWith(text)).toEqual([]);
    await expect(bridged.sandbox.spawn({ ...staying(text), signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
  });

  it("that are being started while the sandbox closes leave nothing", async () => {
    await using bridged = await openBridged({ direct });
    const text = mark();
    const spawning = Array.from({ length: 10 }, () => bridged.sandbox.spawn(staying(text)));
    const settled = Promise.allSettled(spawning);
    await bridged.sandbox.close();
    for (const outcome of await settled) {
      if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(SandboxFailed);
      else expect((await outcome.value.exit).code).not.toBe(0);
    }
    expect(
      await eventually(
        () => processesWith(text),
        ({ length }) => length === 0,
      ),
    ).toEqual([]);
  });

  it("that can't be started fail with the reason", async () => {
    await using bridged = await openBridged({ direct });
    const { sandbox } = bridged;
    await expect(sandbox.spawn({ argv: ["/there/is/none"], env: {} })).rejects.toThrow(
      /none can't be started.*ENOENT/,
    );
    await expect(sandbox.spawn({ argv: ["/bin/true"], env: {}, cwd: "/there/is/none" })).rejects.toThrow(
      SandboxFailed,
    );
    expect(await readdir(join(bridged.folder, "processes"))).toEqual([]);
  });
});

describe.each(pipes)("files over $over", ({ direct }) => {
  it("of 64 MB are transferred both ways, and larger ones are refused", { timeout: 60_000 }, async () => {
    await using bridged = await openBridged({ direct });
    const { sandbox } = bridged;
    const content = randomBytes(64 * MB);
    const path = `${sandbox.workspace}/large ☃\nfile`;
    await sandbox.writeFiles([{ path, content }]);
    expect(digest(await sandbox.readFile(path))).toBe(digest(content));
    await sandbox.writeFiles([{ path, content: Buffer.concat([content, Buffer.alloc(1)]) }]);
    await expect(sandbox.readFile(path)).rejects.toThrow("larger than");
  });

  it("can be transferred simultaneously", async () => {
    await using bridged = await openBridged({ direct });
    const { sandbox } = bridged;
    const files = Array.from({ length: 300 }, (_, number) => ({
      path: `${sandbox.workspace}/${number % 7}/${number}`,
      content: `${number}`,
    }));
    await sandbox.writeFiles(files);
    const read = await Promise.all(files.map(({ path }) => sandbox.readFile(path)));
    expect(read.map((bytes) => Buffer.from(bytes).toString())).toEqual(files.map(({ content }) => content));
  });
});
