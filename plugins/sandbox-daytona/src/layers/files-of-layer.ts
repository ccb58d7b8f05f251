import { join } from "node:path/posix";
import type { SessionFolders } from "@ambit/bridge";
import { SandboxFailed } from "@ambit/core/plugin";
import type { DaytonaConfig } from "../config.js";
import { asSandboxFailed } from "../platform/failure.js";
import { withRetries } from "../platform/retries.js";
import type { Machine } from "../platform/service.js";
import { shellLine } from "../platform/shell-line.js";

/** Names the layer that the files beside it are of. */
const markName = "layer";
/** Milliseconds. */
const executeMs = 60_000;

/** Makes the empty folders that become a layer. @throws SandboxFailed */
export async function makeFolders(machine: Machine, { workspace, home }: SessionFolders): Promise<void> {
  const script = 'umask 022 && mkdir -p "$1" "$2"';
  await execute(machine, ["/bin/sh", "-c", script, "sh", workspace, home], "making a layer's folders");
}

/** On one line: the platform's shell takes no other. */
const markProgram = [
  'const fs = require("node:fs"); const { join } = require("node:path");',
  "const { folder, kept, mark, layer, firstUser } = JSON.parse(process.argv[1]);",
  "const remove = (path) => fs.rmSync(path, { recursive: true, force: true });",
  "for (const name of fs.readdirSync(folder)) if (!kept.includes(join(folder, name))) remove(join(folder, name));",
  'for (const shared of ["/tmp", "/var/tmp", "/run/lock"]) if (fs.existsSync(shared))',
  "for (const name of fs.readdirSync(shared))",
  "if (fs.lstatSync(join(shared, name)).uid >= firstUser) remove(join(shared, name));",
  "fs.writeFileSync(join(folder, mark), layer);",
].join(" ");

/**
 * Leaves nothing of the session but workspace and home, and marks them. To be called when its processes have ended.
 * @throws SandboxFailed
 */
export async function markFiles(
  machine: Machine,
  { folder, workspace, home }: SessionFolders,
  { node, firstUser }: DaytonaConfig["bridge"],
  layer: string,
): Promise<void> {
  const settings = JSON.stringify({ folder, kept: [workspace, home], mark: markName, layer, firstUser });
  await execute(machine, [node, "-e", markProgram, settings], "marking a layer's files");
}

/** @throws SandboxFailed where the sandbox hasn't begun with the layer's files */
export async function checkFiles(machine: Machine, { folder }: SessionFolders, layer: string): Promise<void> {
  const script = '[ "$(cat "$1")" = "$2" ]';
  const argv = ["/bin/sh", "-c", script, "sh", join(folder, markName), layer];
  await execute(machine, argv, "beginning with a layer's files");
}

/** @param argv of a command that may run twice: its response may be lost. */
async function execute(machine: Machine, argv: readonly string[], tried: string): Promise<void> {
  const once = () => machine.execute(shellLine(argv), executeMs);
  const { exitCode, output } = await withRetries(once, { retries: 3, limitMs: executeMs }).catch(
    (error: unknown) => {
      throw asSandboxFailed(error, tried);
    },
  );
  if (exitCode === 0) return;
  throw new SandboxFailed(`Daytona: ${tried} failed (${output.trim().slice(0, 200) || `exit ${exitCode}`})`);
}
