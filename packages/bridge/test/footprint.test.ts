import { describe, expect, it } from "vitest";
import { type BridgedOptions, openBridged, textOf } from "./support/bridged.js";
import { type AnyPipe, ExecPlatform, inKernelPipes } from "./support/exec-platform.js";

const ways: readonly (BridgedOptions & { readonly over: string })[] = [
  { over: "consecutive pipes of lines" },
  { over: "consecutive pipes of bytes", binary: true },
  { over: "one direct pipe", direct: true },
  {
    over: "a first pipe",
    binary: true,
    platform: (folder) => new ExecPlatform(folder, inKernelPipes),
    begin: (pipe: AnyPipe, input) => pipe.write(input),
  },
];

/** Node.js has the main thread, V8's delayed tasks, the debugger's signal and one for files; a newer version may have another. */
const maxThreads = 6;

describe("the guest daemon", () => {
  it.each(ways)("leaves a limit of processes to the run, over $over", async (way) => {
    await using bridged = await openBridged(way);
    const { sandbox } = bridged;
    const paths = Array.from({ length: 16 }, (_, index) => `${sandbox.workspace}/${index}`);
    await sandbox.writeFiles(paths.map((path) => ({ path, content: path })));
    await Promise.all(paths.map((path) => sandbox.readFile(path)));
    const script = "set -- /proc/$PPID/task/*; echo $#";
    const child = await sandbox.spawn({ argv: ["/bin/sh", "-c", script], env: {} });
    expect(Number(await textOf(child.stdout))).toBeLessThanOrEqual(maxThreads);
  });
});
