import { dirname } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Bridged, openBridged, textOf } from "./support/bridged.js";

const decoder = new TextDecoder();

/** The same sandbox, from another process's side. */
function taking({ sandbox, folder }: Bridged, fence: number, more: object = {}): Promise<Bridged> {
  const resume = sandbox.resumption;
  if (resume === undefined) throw new Error("it can't be taken over");
  return openBridged({ in: dirname(folder), takeover: { fence, resume: { ...resume, ...more } } });
}

const file = (sandbox: Bridged["sandbox"], name: string) => `${sandbox.workspace}/${name}`;
const write = ({ sandbox }: Bridged, name: string, content: string) =>
  sandbox.writeFiles([{ path: file(sandbox, name), content }]);

describe("a sandbox that another runner takes over", () => {
  it("keeps its files, and ignores the earlier owner", async () => {
    await using first = await openBridged({ takeover: { fence: 1 } });
    await write(first, "kept", "of the first");
    const left = await first.sandbox.spawn({ argv: ["/bin/sleep", "60.25"], env: {}, role: "agent" });

    await using second = await taking(first, 2);
    expect(decoder.decode(await second.sandbox.readFile(file(second.sandbox, "kept")))).toBe("of the first");
    // What the first had begun is over, before the second begins anything.
    const alive = await second.sandbox.spawn({
      argv: ["/bin/sh", "-c", "pgrep -f '[s]leep 60.25' || echo none"],
      env: { PATH: "/usr/bin:/bin" },
    });
    expect(await textOf(alive.stdout)).toContain("none");
    await expect
      .poll(() => first.failures)
      .toMatchObject([
        {
          message: "Another replica has taken over the session's sandbox: send the session's next run there",
          concerns: "session",
        },
      ]);
    expect(await left.exit).toEqual({ code: null, signal: "SIGKILL" });
    await expect(write(first, "kept", "of the first again")).rejects.toThrow("closed, or was lost");
    await write(second, "kept", "of the second");
    expect(decoder.decode(await second.sandbox.readFile(file(second.sandbox, "kept")))).toBe("of the second");
  });

  it("refuses an owner with an older fence, another key, and another daemon's state", async () => {
    await using first = await openBridged({ takeover: { fence: 3 } });
    await expect(taking(first, 2)).rejects.toThrow("Another replica has taken over");
    await expect(taking(first, 4, { key: "guessed" })).rejects.toThrow("can't be started");
    await expect(taking(first, 4, { epoch: "another" })).rejects.toThrow("was killed");
    // The daemon still takes a right owner, which ends it: the first one's fence is too old by now.
    await using _last = await taking(first, 5);
  });

  it("waits for its next owner without a runner: processes end, files stay", async () => {
    await using first = await openBridged({ takeover: { fence: 1 }, bridge: { orphanTimeoutMs: 300 } });
    await write(first, "kept", "still here");
    await first.sandbox.spawn({ argv: ["/bin/sleep", "61"], env: {}, role: "agent" });
    await first.sandbox.leave();
    await after(1_000);
    await using second = await taking(first, 2);
    expect(decoder.decode(await second.sandbox.readFile(file(second.sandbox, "kept")))).toBe("still here");
    const again = await second.sandbox.spawn({ argv: ["/bin/echo", "begun"], env: {} });
    expect(await textOf(again.stdout)).toBe("begun\n");
  });
});
