import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { messageOf } from "@ambit/core";
import { ConfigurationInvalid } from "../configuration/problems.js";
import { parseJson } from "../parse-json.js";

/**
 * The request of a file, or of stdin for `-`, as JSON.
 * @throws MalformedJson, ConfigurationInvalid for a file that can't be read.
 */
export async function readRequest(file: string): Promise<unknown> {
  return parseJson(await readText(file), file === "-" ? " on stdin" : ` in ${file}`);
}

/** The text of a file, or of stdin for `-`. @throws ConfigurationInvalid for a file that can't be read. */
export function readText(file: string): Promise<string> {
  return file === "-" ? text(process.stdin) : contentOf(file);
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigurationInvalid(file, [`can't be read: ${reason}`], { cause });
  }
}
