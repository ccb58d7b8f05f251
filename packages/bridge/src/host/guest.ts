import { readFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { SandboxFailed } from "@ambit/core/plugin";
import { pipeOfFirstCommand } from "../messages.js";
import type { GuestOptions } from "../remote-sandbox.js";
import { foldersOf } from "../remote-sandbox.js";

export const programName = "bridge.cjs";

/** The guest daemon of one sandbox. */
export interface Guest {
  /** Everything of the sandbox is below it. */
  readonly folder: string;
  readonly program: { readonly path: string; readonly content: Uint8Array };
  /** The program's arguments, after the mode. */
  readonly settings: readonly string[];
}

/** @throws SandboxFailed when it wasn't bundled. */
export async function guestOf(options: GuestOptions): Promise<Guest> {
  const { bridge, ownSystem, supervisor, workspace, hasFolders, unprivileged, takeover } = options;
  const { folder } = foldersOf(options);
  return {
    folder,
    program: { path: join(folder, programName), content: await guestDaemon() },
    settings: [
      folder,
      `${bridge.orphanTimeoutMs}`,
      `${bridge.firstUser}`,
      ownSystem === true ? "own-system" : "shared-system",
      JSON.stringify({
        ...(supervisor === undefined ? {} : { supervisor: { scripts: [], ...supervisor } }),
        workspace,
        hasFolders,
        unprivileged,
        resumable: takeover !== undefined,
      }),
    ],
  };
}

/**
 * How Node.js starts inside, in every command of the bridge: without V8's own threads, since a platform counts all threads of a
 * sandbox towards its limit of processes. The program makes the pool for files small itself.
 */
export function smallNode(node: string): [string, ...string[]] {
  return [node, "--v8-pool-size=0"];
}

/** The command of a direct pipe. It waits for the program, which its standard input begins with. */
export function directCommand(node: string, { program, settings }: Guest): [string, ...string[]] {
  return [
    ...smallNode(node),
    ...nodeArgumentsFromInput(program.content),
    program.path,
    "direct",
    ...settings,
  ];
}

/**
 * Starts the guest daemon with this command's own standard input and output, and lives until the daemon has let go of them: the
 * platform takes its end for the command's. The daemon has no parent and, where the image has `setsid`, a session of its own,
 * since a platform that ends a pipe may also end all descendants of its command. Standard error stays open as long: a container's
 * runtime ends the input of a command that closes it.
 */
const firstScript = `folder=$1; shift; mkdir -p "$folder" && umask 077 && exec 4<&0 5>&1 || exit 1
{ $(command -v setsid) "$@" ${pipeOfFirstCommand}>&1 <&4 >&5 2> "$folder/bridge.log" 4<&- 5>&- & } | cat > /dev/null 4<&- 5>&-`;

/** The command of a first pipe. It waits for the program, which its standard input begins with. */
export function firstCommand(node: string, { folder, program, settings }: Guest): [string, ...string[]] {
  const daemon = [
    ...nodeArgumentsFromInput(program.content, { isKept: true }),
    program.path,
    "first",
    ...settings,
  ];
  return ["/bin/sh", "-c", firstScript, "sh", folder, ...smallNode(node), ...daemon];
}

const daemonFile = fileURLToPath(new URL("../guest-daemon.cjs", import.meta.url));
let daemonContent: Promise<Buffer> | undefined;

/** The guest daemon as one file without dependencies. Read once. @throws SandboxFailed when it wasn't bundled. */
function guestDaemon(): Promise<Buffer> {
  daemonContent ??= readFile(daemonFile).catch((error: unknown) => {
    throw new SandboxFailed("The bridge's guest daemon isn't built: run `npm run build`", { cause: error });
  });
  return daemonContent;
}

/**
 * Node's arguments to run a CommonJS program that standard input begins with: it takes no separate upload. The path that
 * follows is the program's name, in a folder that is created. Runs on Node.js 18.
 *
 * @param isKept whether the program becomes that file before it runs, whole or not at all. Else no file of it is in the sandbox.
 */
export function nodeArgumentsFromInput(
  program: Uint8Array,
  { isKept = false } = {},
): readonly ["-e", string] {
  return ["-e", `(${readAndRun})(${program.length}, ${isKept})`];
}

/** Reads exactly the program: what follows in standard input is for it. */
const readAndRun = `(size, isKept) => {
  const fs = require("fs"), path = process.argv[1], bytes = Buffer.alloc(size);
  for (let at = 0; at < size;) {
    let length;
    try { length = fs.readSync(0, bytes, at, size - at); }
    catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      continue;
    }
    if (length === 0) process.exit(1);
    at += length;
  }
  fs.mkdirSync(require("path").dirname(path), { recursive: true, mode: 0o755 });
  if (isKept) {
    fs.writeFileSync(path + ".part", bytes, { mode: 0o644 });
    fs.renameSync(path + ".part", path);
  }
  require("vm").runInThisContext("(require => {" + bytes + "\\n})", { filename: path })(require);
}`.replaceAll(/\s*\n\s*/g, " ");
