import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { SandboxFailed } from "@ambit/core/plugin";
import type { Relay } from "./gate.js";

const usual = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Absolute paths of the host programs that confine. */
export interface Programs {
  readonly bubblewrap: string;
  readonly relay: Relay;
}

export async function findPrograms(): Promise<Programs> {
  const bubblewrap = await findProgram("bwrap");
  if (bubblewrap === undefined) {
    throw new SandboxFailed("bubblewrap isn't installed");
  }
  const perl = await findProgram("perl");
  // It runs inside, where only programs in the system's folders exist.
  const relay: Relay =
    perl !== undefined && /^\/(usr|bin|sbin)\//.test(await realpath(perl))
      ? { kind: "perl", program: perl }
      : { kind: "node", program: await realpath(process.execPath) };
  return { bubblewrap, relay };
}

/** The host programs that confine, as files: another version, or another file in its place, has another text. */
export async function programIdentities(): Promise<readonly string[]> {
  const names = ["bwrap", "perl"];
  const found = await Promise.all(names.map(async (name) => identityOf(await findProgram(name), name)));
  return [...found, await identityOf(process.execPath, "node")];
}

export async function identityOf(path: string | undefined, name: string): Promise<string> {
  if (path === undefined) return `${name}: none`;
  const { ino, size, mtimeMs, ctimeMs } = await stat(path);
  return [name, await realpath(path), ino, size, mtimeMs, ctimeMs].join(" ");
}

async function findProgram(name: string): Promise<string | undefined> {
  const folders = [
    ...usual,
    ...(process.env.PATH ?? "").split(delimiter).filter((path) => path.startsWith("/")),
  ];
  for (const folder of folders) {
    const path = join(folder, name);
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) return path;
  }
  return undefined;
}
