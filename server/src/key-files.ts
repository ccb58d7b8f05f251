import { createSecretKey, type KeyObject, randomBytes, randomUUID } from "node:crypto";
import { constants, readFileSync } from "node:fs";
import { link, mkdir, open, unlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf, type Log, messageOf, StoreFailed, stateFolder } from "@ambit/core";
import { signerOf } from "@ambit/workspace";
import { ConfigurationInvalid } from "./configuration/problems.js";

/** Characters of a key file at least. */
const minLength = 32;
/** Bytes of a key file at most. */
const maxBytes = 4_096;

/** Where the key is kept when the configuration doesn't say. */
export function defaultKeyFile(
  environment?: Readonly<Record<string, string | undefined>>,
  uid?: number,
): string {
  return stateFolder("interaction.key", environment, uid);
}

/**
 * The key that authenticates users' answers. Read from its file when it is first needed, or created there,
 * readable only for the runner's user. If that isn't possible, the key is kept in memory, with a warning: then
 * answers to questions of an earlier process don't count.
 */
export function interactionKey(file: string, log: Log): () => Promise<KeyObject> {
  let key: Promise<KeyObject> | undefined;
  return () => {
    key ??= readOrMake(file).catch((error: unknown) => {
      log.warn(
        { file, error },
        "the key for interactions can't be kept: answers won't count after a restart, nor on another replica; set interactions.keyFile to a file that the runner's user can write",
      );
      return createSecretKey(randomBytes(32));
    });
    return key;
  };
}

/**
 * The key in a file that the configuration or AMBIT_INTERACTION_KEY_FILE names. It isn't created: with a mistyped name, each
 * replica would make a key of its own, and refuse the answers to the others' questions.
 * @throws ConfigurationInvalid when it can't be used
 */
export async function namedInteractionKey(file: string): Promise<() => Promise<KeyObject>> {
  const fix = `name the one that all replicas share, or make it: (umask 077; openssl rand -hex 32 > ${file})`;
  const key = await namedKey("interactions.keyFile", file, fix);
  return () => Promise.resolve(key);
}

/**
 * A key of before `interactions.keyFile` was changed, or of after it will be. A new one would decrypt nothing.
 * @param setting that names the file. @throws ConfigurationInvalid when it can't be used
 */
export function earlierKey(setting: string, file: string): Promise<KeyObject> {
  return namedKey(setting, file, "put that key back, or leave it out: what it encrypted isn't read then");
}

async function namedKey(setting: string, file: string, fix: string): Promise<KeyObject> {
  try {
    return await read(file);
  } catch (cause) {
    const reason = codeOf(cause) === "ENOENT" ? `there is no file ${file}: ${fix}` : messageOf(cause);
    throw new ConfigurationInvalid(setting, [`can't be used: ${reason}`], { cause });
  }
}

/** The key in a file, or a new one there; never one that ends with this process. @throws StoreFailed */
export async function lastingKey(file: string): Promise<KeyObject> {
  return readOrMake(file).catch((cause: unknown) => {
    const message = `Files can't be encrypted: the key in ${file} can't be used (${messageOf(cause)}). Set interactions.keyFile to a file that the runner's user can read.`;
    throw new StoreFailed(message, { cause });
  });
}

async function readOrMake(file: string): Promise<KeyObject> {
  try {
    return await read(file);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  await mkdir(dirname(file), { recursive: true, mode: 0o711 });
  // Written to a temporary file and linked into place, so that runners that start at the same time read the same
  // complete key.
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, `${randomBytes(32).toString("hex")}\n`, { mode: 0o600, flag: "wx" });
  try {
    await link(draft, file);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    await unlink(draft);
  }
  return await read(file);
}

async function read(file: string): Promise<KeyObject> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new Error(`${file} isn't a file`);
    if (stats.uid !== process.getuid?.() && stats.uid !== 0) {
      throw new Error(`${file} belongs to another user: chown it to the runner's`);
    }
    if ((stats.mode & 0o007) !== 0) throw new Error(`${file} can be used by everybody: chmod 600 ${file}`);
    if (stats.size > maxBytes) throw new Error(`${file} holds more than ${maxBytes} bytes: it is no key`);
    const text = (await handle.readFile("utf8")).trim();
    if (text.length < minLength) {
      throw new Error(
        `${file} holds fewer than ${minLength} characters: write a longer key, or remove the file`,
      );
    }
    return createSecretKey(text, "utf8");
  } finally {
    await handle.close();
  }
}

/**
 * What signs commits, with the key in this file. Read once, when the server starts.
 * @throws ConfigurationInvalid for one that can't be used
 */
export function signerIn(file: string | undefined): ReturnType<typeof signerOf> | undefined {
  if (file === undefined) return undefined;
  try {
    return signerOf(readFileSync(file, "utf8"));
  } catch (cause) {
    const reason = `${file} can't be used (${messageOf(cause)}): ${signingKeyFix}`;
    throw new ConfigurationInvalid("workspace.signingKeyFile", [reason], { cause });
  }
}

const signingKeyFix = "name an Ed25519 key without a passphrase, as `ssh-keygen -t ed25519 -N ''` makes it";
