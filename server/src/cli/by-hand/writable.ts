import { open, rm, stat, writeFile } from "node:fs/promises";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../configuration/problems.js";

/**
 * Before a run, whose result would be lost if its file turned out to be none.
 * @throws ConfigurationInvalid for a file that can't be written
 */
export async function requireWritable(option: string, file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  // Opening a pipe would wait for its reader.
  if (found !== undefined && !found.isFile() && !found.isDirectory()) return;
  try {
    await (await open(file, "a", 0o600)).close();
    if (found === undefined) await rm(file);
  } catch (cause) {
    throw unwritable(option, file, cause);
  }
}

/** Only its user can read the file. @throws ConfigurationInvalid for a file that can't be written */
export async function writeOwn(option: string, file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (cause) {
    throw unwritable(option, file, cause);
  }
}

function unwritable(option: string, file: string, cause: unknown): ConfigurationInvalid {
  const reason = `${file} can't be written (${codeOf(cause) ?? String(cause)})`;
  return new ConfigurationInvalid(option, [`${reason}: name a file in a folder that exists and is yours`], {
    cause,
  });
}
