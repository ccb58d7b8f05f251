import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import {
  bridgeSchema,
  type DirectPipe,
  type DirectPlatform,
  directCommandOf,
  foldersOf,
  openRemoteSandbox,
} from "@ambit/bridge";
import { SandboxFailed } from "@ambit/core/plugin";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteFrames, header, plainBytes } from "../src/transport/byte-format.js";
import { type Frame, type PlainFrame, type StreamId, TransportBroken } from "../src/transport/transport.js";
import { openBridged, textOf, unlimitedSpec } from "./support/bridged.js";
import { eventually, processesWith } from "./support/processes.js";

const KB = 1024;
const mark = () => `mark-${randomBytes(12).toString("hex")}`;

describe("a pipe that carries any bytes", () => {
  const number = fc.integer({ min: 0, max: 0xffff_ffff });
  const stream = fc.constantFrom<StreamId>(0, 1, 2);
  const plain = fc.oneof<fc.Arbitrary<PlainFrame>[]>(
    fc.tuple(fc.constant("open" as const), number, fc.string({ maxLength: 50 })),
    fc.tuple(fc.constant("end" as const), number, stream),
    fc.tuple(fc.constant("windowUpdate" as const), number, stream, number),
    fc.tuple(fc.constant("close" as const), number),
  );
  const data = fc.tuple(number, stream, fc.uint8Array({ maxLength: 3_000 }));

  it("carries the same data for any chunking", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(plain, data), { maxLength: 20 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 500 })),
        (said, cuts) => {
          const bytes = Buffer.concat(
            said.map((one) =>
              typeof one[0] === "number"
                ? Buffer.concat([header("data", one[0], one[1], one[2].length), one[2]])
                : plainBytes(one),
            ),
          );
          const frames: Frame[] = [];
          const received = new Map<string, Buffer>();
          const listener = new ByteFrames({
            frame: (frame) => frames.push(frame),
            data: (channel, on, piece) => {
              const key = `${channel} ${on}`;
              received.set(key, Buffer.concat([received.get(key) ?? Buffer.alloc(0), piece]));
            },
            signal: () => expect.unreachable(),
          });
          for (let at = 0; at < bytes.length; ) {
            const end = at + (cuts.next().value ?? 1);
            listener.push(bytes.subarray(at, end));
            at = end;
          }
          expect(frames).toEqual(said.filter(([first]) => typeof first === "string"));
          const sent = new Map<string, Buffer>();
          for (const one of said) {
            if (typeof one[0] !== "number" || one[2].length === 0) continue;
            const key = `${one[0]} ${one[1]}`;
            sent.set(key, Buffer.concat([sent.get(key) ?? Buffer.alloc(0), one[2]]));
          }
          expect(received).toEqual(sent);
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each([
    ["a frame without end", header("data", 1, 0, 64 * KB + 1)],
    ["a name without end", header("open", 1, 0, 257)],
    ["an unknown frame", Buffer.from([0, 0, 0, 0, 99, 0, 0, 0, 0, 1])],
    ["an unknown stream", Buffer.from([0, 0, 0, 0, 0, 7, 0, 0, 0, 1])],
    ["a number that isn't one", Buffer.from([0, 0, 0, 1, 3, 0, 0, 0, 0, 1, 5])],
  ])("refuses %s", (_what, bytes) => {
    const nothing = () => undefined;
    const frames = new ByteFrames({ frame: nothing, data: nothing, signal: nothing });
    expect(() => frames.push(bytes)).toThrow(TransportBroken);
  });
});

describe("a sandbox over one direct pipe", () => {
  const staying = (text: string) =>
    ({ argv: [process.execPath, "-e", "setTimeout(() => {}, 120_000)", text], env: {} }) as const;

  it("needs no process but the daemon, and opens no second pipe", async () => {
    await using bridged = await openBridged({ direct: true });
    const child = await bridged.sandbox.spawn({ argv: ["/bin/cat"], env: {} });
    const writer = child.stdin.getWriter();
    const content = randomBytes(3_000 * KB);
    const writing = writer.write(content).then(() => writer.close());
    const pieces: Uint8Array[] = [];
    for await (const piece of child.stdout) pieces.push(piece);
    await writing;
    expect(Buffer.compare(Buffer.concat(pieces), content)).toBe(0);
    expect(bridged.platform.opened).toBe(1);
    expect(processesWith(`${bridged.folder}/bridge.cjs`)).toHaveLength(1);
    // It came over the pipe.
    expect(existsSync(`${bridged.folder}/bridge.cjs`)).toBe(false);
  });

  it("blocks a writer whose reader doesn't read, but no other", async () => {
    await using bridged = await openBridged({ direct: true });
    const { sandbox } = bridged;
    const count = "let n = 0; const say = () => { while (process.stdout.write(Buffer.alloc(65536))) n++; };";
    const pour = `${count} setInterval(() => { say(); require("fs").writeFileSync("poured", String(n)); }, 5)`;
    const slow = await sandbox.spawn({ argv: [process.execPath, "-e", pour], env: {} });
    const other = await sandbox.spawn({
      argv: ["/bin/sh", "-c", "sleep 1; echo done"],
      env: { PATH: "/usr/bin:/bin" },
    });
    expect(await textOf(other.stdout)).toBe("done\n");
    const poured = Number(Buffer.from(await sandbox.readFile(`${sandbox.workspace}/poured`)).toString());
    // The window, the pipes in between and what Node reads ahead.
    expect(poured * 64).toBeLessThan(4_096);
    await slow.kill();
  });

  it("ends permanently when its pipe ends, with the reason", async () => {
    await using bridged = await openBridged({ direct: true });
    const child = await bridged.sandbox.spawn(staying(mark()));
    bridged.platform.cut();
    await expect(child.exit).resolves.toEqual({ code: null, signal: "SIGKILL" });
    expect(await textOf(child.stdout)).toBe("");
    expect(bridged.failures).toEqual([expect.any(SandboxFailed)]);
    expect(bridged.failures[0]?.message).toContain("can't be reached any more");
    await expect(bridged.sandbox.spawn({ argv: ["/bin/true"], env: {} })).rejects.toThrow(SandboxFailed);
    expect(bridged.platform.opened).toBe(1);
  });

  it.each<[string, () => Promise<SandboxFailed | undefined>, RegExp]>([
    ["the platform's reason", async () => new SandboxFailed("too much memory"), /^too much memory$/],
    ["the pipe's where it knows none", async () => undefined, /its command ended/],
    ["the pipe's where it fails", () => Promise.reject(new Error("no answer")), /its command ended/],
    ["the pipe's where it never answers", () => new Promise(() => undefined), /its command ended/],
  ])("fails with %s", async (_what, whyLost, reason) => {
    await using bridged = await openBridged({ direct: true, whyLost });
    const child = await bridged.sandbox.spawn(staying(mark()));
    bridged.platform.cut();
    await child.exit;
    expect(bridged.failures.map(({ message }) => message)).toEqual([expect.stringMatching(reason)]);
  });

  it("only loads the daemon until the bridge greets it", async () => {
    const root = await mkdtemp(join(tmpdir(), "ambit-direct-"));
    const bridge = bridgeSchema.parse({ node: process.execPath, folder: root });
    const options = { spec: unlimitedSpec(), bridge, ownSystem: false };
    const { argv, input } = await directCommandOf(options);
    const child = spawn(argv[0], argv.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.write(input);
    const { folder } = foldersOf(options);
    // The program's name is in a folder that is made once all of it has arrived.
    await eventually(() => existsSync(folder), Boolean);
    expect(await readdir(folder)).toEqual([]);
    let said = 0;
    child.stdout.on("data", () => (said += 1));
    const platform: DirectPlatform = {
      hasProgram: true,
      openDirectPipe: async () => ({
        input: child.stdin,
        output: child.stdout,
        close: async () => void child.kill("SIGKILL"),
      }),
      upload: async () => undefined,
      destroy: async () => void child.kill("SIGKILL"),
    };
    expect(said).toBe(0);
    const scope = { signal: new AbortController().signal, defer: () => undefined };
    const sandbox = await openRemoteSandbox({ ...options, platform, evidence: {} }, scope);
    expect(await readdir(folder)).toContain("workspace");
    const printed = await sandbox.spawn({ argv: ["/bin/echo", "greeted"], env: {} });
    expect(await textOf(printed.stdout)).toBe("greeted\n");
    await sandbox.close();
    await rm(root, { recursive: true, force: true });
  });

  it("ends where the pipe closes before the bridge has greeted it", async () => {
    const root = await mkdtemp(join(tmpdir(), "ambit-direct-"));
    const bridge = bridgeSchema.parse({ node: process.execPath, folder: root });
    const { argv, input } = await directCommandOf({ spec: unlimitedSpec(), bridge });
    const child = spawn(argv[0], argv.slice(1), { stdio: ["pipe", "ignore", "inherit"] });
    child.stdin.end(input);
    expect(await once(child, "exit")).toEqual([0, null]);
    await rm(root, { recursive: true, force: true });
  });

  it("leaves no process after the runner closed the pipe", async () => {
    const bridged = await openBridged({ direct: true });
    const text = mark();
    await bridged.sandbox.spawn(staying(text));
    expect(processesWith(text)).toHaveLength(1);
    const [daemon] = bridged.platform.pipes;
    daemon?.stdin?.destroy();
    const gone = await eventually(
      () => processesWith(text),
      ({ length }) => length === 0,
    );
    expect(gone).toEqual([]);
    await bridged[Symbol.asyncDispose]();
  });
});

describe("an untrusted guest daemon on a direct pipe", () => {
  /** Sends anything, and receives everything unless it is deaf. */
  async function opening(
    say: (output: PassThrough) => void | Promise<void>,
    { isDeaf = false, whyLost }: { isDeaf?: boolean; whyLost?: DirectPlatform["whyLost"] } = {},
  ) {
    const failures: SandboxFailed[] = [];
    let destroyed = 0;
    const platform: DirectPlatform = {
      openDirectPipe: async (): Promise<DirectPipe> => {
        const [input, output] = [new PassThrough(), new PassThrough()];
        if (!isDeaf) input.resume();
        setImmediate(() => void say(output));
        return { input, output, close: async () => void output.destroy() };
      },
      upload: async () => undefined,
      whyLost,
      destroy: async () => {
        destroyed += 1;
      },
    };
    const spec = unlimitedSpec({ onFailure: (failure) => failures.push(failure) });
    const bridge = bridgeSchema.parse({ heartbeatTimeoutMs: 1_000 });
    const scope = { signal: new AbortController().signal, defer: () => undefined };
    const outcome = await openRemoteSandbox({ platform, spec, bridge, evidence: {} }, scope).then(
      () => undefined,
      (error: unknown) => error,
    );
    return { outcome, destroyed, failures };
  }
  const hello = plainBytes(["hello", 1]);

  it.each<[string, (output: PassThrough) => void, RegExp]>([
    ["noise", (output) => void output.write("sh: node: not found\n"), /can't be started.*node: not found/s],
    ["nothing", () => undefined, /can't be started/],
    ["another version", (output) => void output.write(plainBytes(["hello", 99])), /version 99/],
    ["its end", (output) => void output.end(), /its command ended/],
  ])("that says %s in place of a greeting is given up", async (_what, say, why) => {
    const { outcome, destroyed } = await opening(say);
    expect(outcome).toBeInstanceOf(SandboxFailed);
    expect(String(outcome)).toMatch(why);
    expect(destroyed).toBe(1);
  });

  it("that ends without a word is given up with the platform's reason, if it knows one", async () => {
    const end = (output: PassThrough) => void output.end();
    const known = await opening(end, { whyLost: async () => new SandboxFailed("too much memory") });
    expect(String(known.outcome)).toMatch(/: too much memory$/);
    const unknown = await opening(end, { whyLost: () => Promise.reject(new Error("no answer")) });
    expect(String(unknown.outcome)).toMatch(/can't be started in the sandbox: its command ended$/);
  });

  it("that sends too much is disconnected", async () => {
    const { outcome, failures } = await opening((output) => {
      output.write(hello);
      // Channel 1 is the question for its facts.
      for (let piece = 0; piece < 20; piece++)
        output.write(Buffer.concat([header("data", 1, 2, 64 * KB), Buffer.alloc(64 * KB, 120)]));
      output.write(Buffer.alloc(20, 0xff));
    });
    expect(outcome).toBeInstanceOf(SandboxFailed);
    expect(String([outcome, ...failures])).toContain("broke its protocol");
  });

  it("that causes responses and reads none fills no memory", { timeout: 60_000 }, async () => {
    let isOver = false;
    const { outcome, failures } = await opening(
      async (output) => {
        output.write(hello);
        output.once("close", () => {
          isOver = true;
        });
        // Each gets its refusal, which isn't read.
        const flood = Buffer.concat(
          Array.from({ length: 5_000 }, (_, at) => plainBytes(["open", 2 * at + 2, "?"])),
        );
        while (!isOver) {
          if (!output.write(flood)) await Promise.race([once(output, "drain"), once(output, "close")]);
        }
      },
      { isDeaf: true },
    );
    expect(outcome).toBeInstanceOf(SandboxFailed);
    expect(String([outcome, ...failures])).toMatch(/reads nothing/);
  });
});
