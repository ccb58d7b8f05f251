import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import {
  bridgeSchema,
  type DirectPlatform,
  type FirstCommand,
  firstCommandOf,
  openRemoteSandbox,
  type RemoteSandbox,
  type RemoteSandboxOptions,
} from "@ambit/bridge";
import type { Log, SandboxFailed, SandboxSpec } from "@ambit/core/plugin";
import { type AnyPipe, DirectExecPlatform, ExecPlatform, inBytes } from "./exec-platform.js";

const silent = () => undefined;
export const silentLog: Log = { debug: silent, info: silent, warn: silent, error: silent };

/**
 * Of this process's own: a sandbox ends all processes of its users, and here those of every test are on one machine.
 * As many as a bridge may use lie between two.
 */
const firstUser = 200_000 + 10_000 * randomInt(10_000);

export interface Bridged {
  readonly sandbox: RemoteSandbox;
  readonly platform: ExecPlatform;
  readonly failures: SandboxFailed[];
  /** The folder of the guest daemon. */
  readonly folder: string;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface BridgedOptions {
  readonly platform?: (folder: string) => ExecPlatform;
  /** Whether its one pipe carries any bytes and lasts. Default false. */
  readonly direct?: boolean;
  /** Whether its pipes carry any bytes, and break. Default false. */
  readonly binary?: boolean;
  /** Gives the command of a first binary pipe its input. Default: there is no first pipe. */
  readonly begin?: (pipe: AnyPipe, input: FirstCommand["input"]) => Promise<void>;
  /** What such a platform says of its pipe's end. */
  readonly whyLost?: DirectPlatform["whyLost"];
  readonly bridge?: object;
  readonly spec?: Partial<SandboxSpec>;
  readonly ownSystem?: boolean;
  readonly unprivileged?: boolean;
  readonly signal?: AbortSignal;
  readonly takeover?: RemoteSandboxOptions["takeover"];
  /** Ports that may be entered. Default: none ever. */
  readonly inbound?: readonly number[];
  /** Default: one of this sandbox's own. */
  readonly in?: string;
}

/** Of a sandbox without limits. */
export function unlimitedSpec(own: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id: "session",
    boundary: {
      network: { mode: "on", rules: [] },
      filesystem: { mode: "on", readable: [], writable: [], denied: [] },
      resources: {},
      secrets: "visible",
      enforcement: "strict",
    },
    required: [],
    requiredPaths: [],
    onDecision: silent,
    log: silentLog,
    ...own,
  };
}

/** A sandbox on this machine over the bridge, with nothing that confines it: the bridge itself is what is looked at. */
export async function openBridged(options: BridgedOptions = {}): Promise<Bridged> {
  const folder = options.in ?? (await mkdtemp(join(tmpdir(), "ambit-bridge-")));
  const platform =
    options.platform?.(folder) ??
    (options.direct === true ? new DirectExecPlatform(folder, options.whyLost) : new ExecPlatform(folder));
  const failures: SandboxFailed[] = [];
  const spec = unlimitedSpec({ onFailure: (failure) => failures.push(failure), ...options.spec });
  const settings = { folder, node: process.execPath, orphanTimeoutMs: 5_000, firstUser };
  const bridge = bridgeSchema.parse({ ...settings, ...options.bridge });
  const { takeover, inbound, begin } = options;
  const guest = {
    spec,
    bridge,
    ownSystem: options.ownSystem ?? false,
    unprivileged: options.unprivileged ?? false,
  };
  const firstPipe = async () => {
    if (begin === undefined) return {};
    const { argv, input } = await firstCommandOf(guest);
    const pipe = await platform.openPipe([...argv]);
    await begin(pipe, input);
    return { firstPipe: pipe };
  };
  const sandbox = await openRemoteSandbox(
    {
      platform: options.binary === true ? { ...inBytes(platform), ...(await firstPipe()) } : platform,
      ...guest,
      evidence: {},
      ...(takeover === undefined ? {} : { takeover }),
      ...(inbound === undefined ? {} : { inbound: () => inbound }),
    },
    { signal: options.signal ?? new AbortController().signal, defer: silent },
  );
  return {
    sandbox,
    platform,
    failures,
    folder: join(folder, spec.id),
    [Symbol.asyncDispose]: async () => {
      await sandbox.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Goes to the guest daemon by its socket once it runs, without a process for each pipe: so that a thousand pipes can be
 * cut. Each is cut after a number of bytes, either way, that `cutAfter` says.
 */
export class CuttingPlatform extends ExecPlatform {
  cuts = 0;
  cutAfter: () => number | undefined = () => undefined;

  override async openPipe(argv: readonly [string, ...string[]]): Promise<AnyPipe> {
    if (this.opened === 0) return await super.openPipe(argv);
    this.opened += 1;
    const socket = connect(join(this.folder, "session", "bridge.sock"));
    socket.on("error", silent);
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.once("connect", () => resolve());
    });
    let left = this.cutAfter();
    const count = (bytes: Buffer): Buffer => {
      if (left === undefined) return bytes;
      const passed = bytes.subarray(0, left);
      left -= passed.length;
      return passed;
    };
    const cut = () => {
      this.cuts += 1;
      socket.destroy();
    };
    const passing = async function* (): AsyncGenerator<Buffer> {
      for await (const bytes of socket) {
        yield count(bytes);
        if (left === 0) return cut();
      }
    };
    return {
      output: Readable.toWeb(Readable.from(passing(), { objectMode: false })),
      write: (written) =>
        new Promise<void>((resolve, reject) => {
          const bytes = count(Buffer.from(written));
          socket.write(bytes, (error) => {
            if (left === 0 && !socket.destroyed) cut();
            if (error || left === 0) reject(error ?? new Error("cut"));
            else resolve();
          });
        }),
      close: async () => {
        socket.destroy();
      },
    };
  }
}

export async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}
