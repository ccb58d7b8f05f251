import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable, type Writable } from "node:stream";
import {
  bridgeSchema,
  type DirectPipe,
  type DirectPlatform,
  openRemoteSandbox,
  type Pipe,
  type RemotePlatform,
  type RemoteSandbox,
} from "@ambit/bridge";
import { messageOf } from "@ambit/core";
import type { Need } from "../../goal.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import { boundaryOf, silent } from "./confined.js";

type PipedChild = ChildProcessByStdio<Writable, Readable, null>;

/** Separate process and network namespaces, entered with `nsenter`: as remote as one machine allows. */
export interface Namespaces extends RemotePlatform {
  /** Opens another sandbox over the bridge, with its own guest daemon. */
  open(): Promise<RemoteSandbox>;
  close(): Promise<void>;
}

export async function openNamespaces(): Promise<Namespaces> {
  const folder = await temporaryFolder();
  const options = ["--pid", "--net", "--mount-proc", "--fork", "--kill-child"];
  const holder = spawn("unshare", [...options, "--", "/bin/sh", "-c", "echo up; exec cat > /dev/null"]);
  await Promise.race([once(holder.stdout, "data"), once(holder, "exit")]);
  const first = await childOf(holder);
  const enter = (argv: readonly string[]) =>
    start(["nsenter", "--target", first, "--mount", "--pid", "--net", "--", ...argv]);
  const platform: RemotePlatform & DirectPlatform = {
    openPipe: async (argv) => pipeOf(await enter(argv)),
    openDirectPipe: async (argv) => directPipeOf(await enter(argv)),
    upload: async (path, content) => {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    },
    // Only this sandbox ends: the namespaces belong to the measurement.
    destroy: () => Promise.resolve(),
  };
  const opened = new Set<RemoteSandbox>();
  const open = async () => {
    const spec = {
      id: `bench-${randomUUID()}`,
      boundary: boundaryOf({ network: "own", limited: false }),
      required: [],
      requiredPaths: [],
      onDecision: () => undefined,
      log: silent,
    };
    const bridge = bridgeSchema.parse({ folder: folder.path, node: process.execPath });
    const scope = { signal: new AbortController().signal, defer: () => undefined };
    const sandbox = await openRemoteSandbox({ platform, spec, bridge, evidence: {} }, scope);
    opened.add(sandbox);
    return sandbox;
  };
  const close = async () => {
    await Promise.all([...opened].map((sandbox) => sandbox.close()));
    const closed = once(holder, "close");
    holder.kill("SIGKILL");
    await closed;
    await folder[Symbol.asyncDispose]();
  };
  return { ...platform, open, close };
}

/** Namespaces can be created here, which is shown by creating them. */
export const namespaces: Need = {
  missing: async () => {
    try {
      await (await openNamespaces()).close();
      return undefined;
    } catch (error) {
      return `no namespaces can be made here: ${messageOf(error)}`;
    }
  },
};

/** The host's process id of the namespaces' first process. */
async function childOf(holder: ChildProcess): Promise<string> {
  const children = await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8");
  const [first = ""] = children.trim().split(" ");
  if (first === "") throw new Error("unshare ended early");
  return first;
}

async function start([program = "", ...rest]: readonly string[]): Promise<PipedChild> {
  const child = spawn(program, rest, { stdio: ["pipe", "pipe", "ignore"] });
  await once(child, "spawn");
  return child;
}

function pipeOf(child: PipedChild): Pipe {
  // Each write fails with it, too.
  child.stdin.on("error", () => undefined);
  return {
    output: Readable.toWeb(child.stdout),
    write: (lines) =>
      new Promise((resolve, reject) => {
        child.stdin.write(lines, (error) => (error ? reject(error) : resolve()));
      }),
    close: () => end(child),
  };
}

function directPipeOf(child: PipedChild): DirectPipe {
  return { output: child.stdout, input: child.stdin, close: () => end(child) };
}

async function end(child: PipedChild): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
