import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  bridgeSchema,
  openRemoteSandbox,
  type Pipe,
  type RemotePlatform,
  type RemoteSandboxOptions,
} from "@ambit/bridge";
import { SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { openBridged, unlimitedSpec } from "./support/bridged.js";
import { ExecPlatform } from "./support/exec-platform.js";
import { HostilePlatform } from "./support/hostile-platform.js";
import { eventually, processesWith } from "./support/processes.js";

const facts = {
  searchPath: "/bin",
  node: "20.0.0",
  uid: 1,
  ownUsers: false,
  whyShared: "a test",
  openPorts: [],
};
const answerFacts = (kind: string) => (kind === "facts" ? facts : undefined);

interface Options {
  readonly bridge?: object;
  readonly signal?: AbortSignal;
  readonly evidence?: RemoteSandboxOptions["evidence"];
}

function open(
  platform: RemotePlatform,
  { bridge = {}, signal = new AbortController().signal, evidence = {} }: Options = {},
) {
  const spec = unlimitedSpec({ id: `s-${randomBytes(8).toString("hex")}` });
  const scope = { signal, defer: () => undefined };
  return openRemoteSandbox({ platform, spec, bridge: bridgeSchema.parse(bridge), evidence }, scope);
}

describe("a platform that isn't ready yet", () => {
  it("is waited for before anything is brought there, whatever the bridge's own limits", async () => {
    const platform = new HostilePlatform(answerFacts);
    const order: string[] = [];
    const { upload } = platform;
    Object.assign(platform, {
      ready: async () => {
        // Longer than a pipe may be silent.
        await new Promise((resolve) => setTimeout(resolve, 500));
        order.push("ready");
      },
      upload: async (...args: Parameters<typeof upload>) => {
        order.push("upload");
        await upload.apply(platform, args);
      },
    });
    const sandbox = await open(platform, { bridge: { heartbeatTimeoutMs: 400 } });
    expect(order[0]).toBe("ready");
    expect(order[1]).toBe("upload");
    await sandbox.close();
  });

  it("leaves nothing when it never is", async () => {
    const platform = new HostilePlatform(answerFacts);
    const failure = new SandboxFailed("The image doesn't exist");
    Object.assign(platform, { ready: () => Promise.reject(failure) });
    await expect(open(platform)).rejects.toBe(failure);
    expect(platform.destroyed).toBe(1);
  });
});

it("reads a backend's evidence each time, if it is a function", async () => {
  const platform = new HostilePlatform(answerFacts);
  let known = 1;
  const sandbox = await open(platform, { evidence: () => ({ known }) });
  expect(sandbox.evidence).toMatchObject({ known: 1 });
  known = 2;
  expect(sandbox.evidence).toMatchObject({ known: 2 });
  await sandbox.close();
});

describe("an aborted opening", () => {
  const reason = new Error("cancelled");

  it.each(["upload", "openPipe"] as const)("leaves nothing when the platform hangs in %s", async (where) => {
    const abort = new AbortController();
    const platform = new HostilePlatform(answerFacts);
    const hangs = () => new Promise<never>(() => setTimeout(() => abort.abort(reason), 50));
    Object.assign(platform, { [where]: hangs });
    await expect(open(platform, { signal: abort.signal })).rejects.toBe(reason);
    expect(platform.destroyed).toBe(1);
  });

  it("closes a pipe that opens too late", async () => {
    const abort = new AbortController();
    const platform = new HostilePlatform(answerFacts);
    let come: () => void = () => undefined;
    const openPipe = platform.openPipe.bind(platform);
    const late = new Promise<void>((resolve) => {
      come = resolve;
    });
    platform.openPipe = async (): Promise<Pipe> => {
      setTimeout(() => abort.abort(reason), 50);
      await late;
      return await openPipe();
    };
    await expect(open(platform, { signal: abort.signal })).rejects.toBe(reason);
    come();
    expect(
      await eventually(
        () => platform.closed,
        (closed) => closed === 1,
      ),
    ).toBe(1);
  });

  it("leaves nothing when the guest daemon doesn't answer", async () => {
    const platform = new HostilePlatform(() => undefined);
    const abort = AbortSignal.timeout(200);
    await expect(open(platform, { signal: abort })).rejects.toThrow("timeout");
    expect([platform.destroyed, platform.closed]).toEqual([1, 1]);
  });

  it("leaves no process of the guest daemon", async () => {
    let platform: ExecPlatform | undefined;
    const abort = new AbortController();
    const opening = openBridged({
      signal: abort.signal,
      platform: (folder) => {
        platform = new (class extends ExecPlatform {
          override async openPipe(argv: readonly [string, ...string[]]): Promise<Pipe> {
            const pipe = await super.openPipe(argv);
            setTimeout(() => abort.abort(reason), 150);
            // Without a greeting the guest daemon waits, however fast it starts.
            return { output: pipe.output, close: () => pipe.close(), write: async () => undefined };
          }
        })(folder);
        return platform;
      },
    });
    await Promise.all([expect(opening).rejects.toBe(reason), once(abort.signal, "abort")]);
    const { folder = "" } = platform ?? {};
    expect(platform?.destroyed).toBe(1);
    expect(
      await eventually(
        () => processesWith(folder),
        ({ length }) => length === 0,
      ),
    ).toEqual([]);
  });
});

describe("an untrusted guest daemon", () => {
  const withGreeting = (greeting: string) => new HostilePlatform(answerFacts, greeting);

  it.each([
    ["noise", "no bridge here\n"],
    ["another version's greeting", '["<",0,"hello",1,"epoch",99,0]\n'],
    ["noise without a line's end", "x".repeat(100_000)],
    ["echoes", '[">",0,"hello",1,"key",1,0]\n'],
  ])("that says %s in place of a greeting is given up", async (_what, greeting) => {
    const opening = open(withGreeting(greeting), { bridge: { heartbeatTimeoutMs: 200 } });
    await expect(opening).rejects.toThrow(/can't be started/);
  });

  it("that acknowledges unsent data is disconnected at once", async () => {
    const platform = withGreeting('["<",0,"hello",1,"epoch",1,7]\n');
    await expect(open(platform)).rejects.toThrow(/broke its protocol/);
    expect(platform.opened).toBe(1);
  });

  it.each([
    ["nothing of use", {}],
    ["wrong types", { ...facts, uid: "0", ownUsers: "yes" }],
    ["endless words", { ...facts, searchPath: "/".repeat(10_000) }],
    ["a refusal", { refused: "no" }],
  ])("that answers %s opens nothing", async (_what, answer) => {
    const platform = new HostilePlatform(() => answer);
    await expect(open(platform)).rejects.toBeInstanceOf(SandboxFailed);
    expect(platform.destroyed).toBe(1);
  });

  it("can't fill memory with a file, or add its own data to the evidence", async () => {
    const platform = new HostilePlatform((kind, say) => {
      if (kind === "facts") return { ...facts, workspace: "/etc", extra: "evil" };
      if (kind === "run")
        return { started: { pid: 1, uid: 2, "network.deny": true, __proto__: { polluted: true } } };
      if (kind === "read") for (let piece = 0; piece < 10_000; piece++) say(Buffer.alloc(11_000, 120));
      return undefined;
    });
    const sandbox = await open(platform);
    expect(sandbox.workspace).toMatch(/^\/tmp\/ambit\/s-[0-9a-f]+\/workspace$/);
    expect(Object.keys(sandbox.evidence).toSorted()).toEqual(["bridge.node", "bridge.ownUsers", "uid"]);
    const child = await sandbox.spawn({ argv: ["/bin/true"], env: {} });
    expect(child.evidence).toEqual({ pid: 1, uid: 2 });
    await expect(sandbox.readFile(`${sandbox.workspace}/a`)).rejects.toBeInstanceOf(SandboxFailed);
    await sandbox.close();
    expect(platform.destroyed).toBe(1);
  });
});
