import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Readable } from "node:stream";
import { codeOf } from "@ambit/core/plugin";

/** A command for `/bin/sh`, as the AI SDK's harness starts it. */
interface ShellCommand {
  readonly command: string;
  readonly workingDirectory?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Creation {
  readonly sessionId?: string;
  /** The harness' own set-up, which is done once in a folder. */
  onFirstCreate?(session: object, options: object): Promise<void>;
}

/**
 * A sandbox provider of the AI SDK's harness (`HarnessV1SandboxProvider` of `@ai-sdk/harness`) that confines nothing: sessions are
 * processes of this host in one folder.
 *
 * @param programs folder with what its set-up needs, before the `PATH`. @param freePort of each session's bridge.
 */
export function hostSandbox(folder: string, programs: string, freePort: () => Promise<number>) {
  const environment = { ...process.env, PATH: `${programs}:${process.env.PATH ?? ""}` };
  const pathOf = ({ path }: { readonly path: string }) => resolve(folder, path);
  const read = async (file: { readonly path: string }) =>
    readFile(pathOf(file)).catch((error: unknown) => {
      if (codeOf(error) === "ENOENT") return null;
      throw error;
    });
  const write = async (file: { readonly path: string; readonly content: string | Uint8Array }) => {
    await mkdir(dirname(pathOf(file)), { recursive: true });
    await writeFile(pathOf(file), file.content);
  };
  return {
    specificationVersion: "harness-sandbox-v1",
    providerId: "host",
    createSession: async ({ sessionId, onFirstCreate }: Creation = {}) => {
      const port = await freePort();
      const children = new Set<ChildProcess>();
      const start = async ({ command, workingDirectory = ".", env }: ShellCommand) => {
        const child = spawn("/bin/sh", ["-c", command], {
          cwd: resolve(folder, workingDirectory),
          env: { ...environment, ...env },
          stdio: ["ignore", "pipe", "pipe"],
          detached: true,
        });
        children.add(child);
        const ended = once(child, "close").then(([code]) => ({ exitCode: Number(code ?? 1) }));
        return {
          pid: child.pid,
          stdout: Readable.toWeb(child.stdout),
          stderr: Readable.toWeb(child.stderr),
          wait: () => ended,
          kill: async () => endGroup(child),
        };
      };
      const run = async (command: ShellCommand) => {
        const { stdout, stderr, wait } = await start(command);
        const texts = [Readable.fromWeb(stdout), Readable.fromWeb(stderr)].map((stream) => textOf(stream));
        const [printed = "", failed = ""] = await Promise.all(texts);
        return { ...(await wait()), stdout: printed, stderr: failed };
      };
      const end = async () => {
        for (const child of children) endGroup(child);
      };
      const urlOf = (protocol = "http") => `${protocol}://127.0.0.1:${port}`;
      const session = {
        description: "this host",
        id: sessionId ?? `session-${port}`,
        defaultWorkingDirectory: folder,
        ports: [port],
        getPortEndpoint: async ({ protocol }: { readonly protocol?: string }) => ({ url: urlOf(protocol) }),
        getPortUrl: async ({ protocol }: { readonly protocol?: string }) => urlOf(protocol),
        readBinaryFile: read,
        readTextFile: async (file: { readonly path: string }) => (await read(file))?.toString() ?? null,
        writeBinaryFile: write,
        writeTextFile: write,
        spawn: start,
        run,
        stop: end,
        destroy: end,
        restricted: () => session,
      };
      await onFirstCreate?.(session, {});
      return session;
    },
  };
}

async function textOf(stream: Readable): Promise<string> {
  let text = "";
  for await (const part of stream) text += part;
  return text;
}

function endGroup({ pid, exitCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
}
