import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { openBridged, textOf } from "./support/bridged.js";
import { type AnyPipe, ExecPlatform, inKernelPipes } from "./support/exec-platform.js";
import { eventually } from "./support/processes.js";

const kernelPipes = (folder: string) => new ExecPlatform(folder, inKernelPipes);
const give = (pipe: AnyPipe, input: Uint8Array) => pipe.write(input);

const pipesIn = (listed: string): readonly string[] => listed.match(/pipe:\[\d+\]/g) ?? [];
/** What started the tests may have left some open. */
const ownPipes = () =>
  pipesIn(execFileSync("/bin/ls", ["-l", `/proc/${process.pid}/fd`], { encoding: "utf8" }));

describe("a first pipe, whose command brings and starts the guest daemon", () => {
  it("is the only command, carries the runner's files too, and no process of a run inherits it", async () => {
    const path = fileURLToPath(import.meta.url);
    const spec = { requiredPaths: [{ path, what: "the agent" }] };
    await using bridged = await openBridged({ binary: true, platform: kernelPipes, begin: give, spec });
    const { sandbox, platform, folder } = bridged;
    const listing = await sandbox.spawn({ argv: ["/bin/ls", "-l", "/proc/self/fd"], env: {} });
    const inherited = pipesIn(await textOf(listing.stdout)).filter((pipe) => !ownPipes().includes(pipe));
    expect(inherited).toEqual([]);
    expect(platform.opened).toBe(1);
    expect(existsSync(join(folder, "bridge.cjs"))).toBe(true);
    const copied = join(sandbox.image?.copyRoot ?? "", path);
    expect(readFileSync(copied)).toEqual(readFileSync(path));
  });

  it("ends with its input, and its successor loses and repeats nothing", { timeout: 60_000 }, async () => {
    // Nothing but the guest daemon ends its command.
    const begin = async (pipe: AnyPipe, input: Uint8Array) => {
      pipe.close = async () => undefined;
      await pipe.write(input);
    };
    await using bridged = await openBridged({ binary: true, platform: kernelPipes, begin });
    const { sandbox, platform, failures } = bridged;
    const [first] = platform.pipes;
    const echo = await sandbox.spawn({ argv: ["/bin/cat"], env: {} });
    const writer = echo.stdin.getWriter();
    const sent = Array.from({ length: 200_000 }, (_, index) => `${index}\n`).join("");
    const writing = (async () => {
      for (let at = 0; at < sent.length; at += 10_000) {
        await writer.write(Buffer.from(sent.slice(at, at + 10_000)));
        if (at === 500_000) first?.stdin?.end();
      }
      await writer.close();
    })();
    const [echoed] = await Promise.all([textOf(echo.stdout), writing]);
    expect(echoed === sent).toBe(true);
    expect([platform.opened, failures]).toEqual([2, []]);
    const code = await eventually(
      () => first?.exitCode,
      (ended) => ended !== null,
    );
    // The second is the kernel's, where the command still wrote when its successor had taken over.
    expect([0, 141]).toContain(code);
    expect(platform.pipes.size).toBe(1);
  });

  it.each([
    {
      title: "broke before the program had arrived",
      platform: kernelPipes,
      begin: async (pipe: AnyPipe, input: Uint8Array) => {
        await pipe.write(input.subarray(0, 10_000));
        await pipe.close();
      },
    },
    {
      title: "can't be opened again by the guest daemon",
      platform: (folder: string) => new ExecPlatform(folder),
      begin: give,
    },
  ])("is replaced by one to an uploaded guest daemon where it $title", async ({ platform, begin }) => {
    await using bridged = await openBridged({ binary: true, platform, begin });
    const child = await bridged.sandbox.spawn({ argv: ["/bin/echo", "here"], env: {} });
    expect(await textOf(child.stdout)).toBe("here\n");
    expect([bridged.platform.opened, bridged.failures]).toEqual([2, []]);
  });
});
