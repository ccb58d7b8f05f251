import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { messageOf } from "@ambit/core";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { parseJson } from "../../parse-json.js";

/**
 * The request of a file, or of stdin for `-`, as JSON.
 * @throws MalformedJson, ConfigurationInvalid for a file that can't be read.
 */
export async function readRequest(file: string): Promise<unknown> {
  const content = file === "-" ? await text(process.stdin) : await contentOf(file);
  return parseJson(content, file === "-" ? " on stdin" : ` in ${file}`);
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigurationInvalid(file, [`can't be read: ${reason}`], { cause });
  }
}
