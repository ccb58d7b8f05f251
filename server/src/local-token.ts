import { randomBytes, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, messageOf, stateFolder } from "@ambit/core";
import { ConfigurationInvalid } from "./configuration/problems.js";
import { isLoopback } from "./http/caller/loopback.js";

/** Bytes that are read of a file: a token has 49. */
const maxBytes = 1_024;

/** The token of a server on loopback that was given none, and its file. */
export interface LocalToken {
  readonly token: string;
  readonly file: string;
  /** Called when the server closes: no program sends the token of a server that has ended. */
  remove(): Promise<void>;
}

/** Where the server that listens at this port of loopback keeps the token that it made. */
function localTokenFile(port: number, folder = stateFolder()): string {
  return join(folder, `server-${port}.token`);
}

/** A new token. Each start makes its own, so that a program that takes the port meanwhile learns none that counts. */
export function newLocalToken(): string {
  return `local_${randomBytes(32).toString("base64url")}`;
}

/**
 * Keeps the token in a file that only this user can read, for callers of this machine.
 * @throws ConfigurationInvalid where it can't be written
 */
export async function keepLocalToken(
  token: string,
  port: number,
  folder = stateFolder(),
): Promise<LocalToken> {
  const file = localTokenFile(port, folder);
  // Renamed into place, so that no caller reads a half of it, and what an earlier server left is replaced.
  const draft = `${file}.${randomUUID()}`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o711 });
    await writeFile(draft, `${token}\n`, { mode: 0o600, flag: "wx" });
    await rename(draft, file);
  } catch (cause) {
    const fix = "set AMBIT_TOKEN, or make the folder writable";
    throw new ConfigurationInvalid(
      "server.auth",
      [
        `no token is configured, and the one that the server makes can't be kept: ${messageOf(cause)}: ${fix}`,
      ],
      { cause },
    );
  }
  const remove = async () => {
    if ((await readToken(file).catch(() => undefined)) === token) await unlink(file).catch(() => undefined);
  };
  return { token, file, remove };
}

/**
 * The token of the server on this machine that `url` names. Undefined where there is none, or for any other address:
 * no other server gets the token.
 * @throws ConfigurationInvalid for a file that another user could have written
 */
export async function localTokenFor(url: string, folder = stateFolder()): Promise<string | undefined> {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "http:" || !isLoopback(hostname)) return undefined;
  const file = localTokenFile(port === "" ? 80 : Number(port), folder);
  try {
    return await readToken(file);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT" || codeOf(cause) === "EACCES") return undefined;
    throw new ConfigurationInvalid(file, [messageOf(cause)], { cause });
  }
}

async function readToken(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > maxBytes) throw new Error("holds no token: remove it");
    if (stats.uid !== process.getuid?.()) throw new Error("belongs to another user: remove it");
    return (await handle.readFile("utf8")).trim();
  } finally {
    await handle.close();
  }
}
