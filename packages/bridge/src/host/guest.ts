import { join } from "node:path/posix";
import { foldersOf } from "../folders.js";
import { pipeOfFirstCommand } from "../messages.js";
import { guestDaemon } from "./guest-daemon.js";
import { nodeArgumentsFromInput } from "./node-arguments.js";
import type { RemoteSandboxOptions } from "./remote-sandbox.js";

export const programName = "bridge.cjs";

/** What decides how a sandbox's guest daemon is started. */
export type GuestOptions = Pick<
  RemoteSandboxOptions,
  | "bridge"
  | "folderName"
  | "ownSystem"
  | "supervisor"
  | "workspace"
  | "hasFolders"
  | "unprivileged"
  | "takeover"
> & { readonly spec: Pick<RemoteSandboxOptions["spec"], "id"> };

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
