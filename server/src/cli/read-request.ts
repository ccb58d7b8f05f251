import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { RequestInvalid } from "@ambit/core";
import { ConfigurationInvalid } from "../configuration/problems.js";

/**
 * The request of a file, or of stdin for `-`, as JSON.
 * @throws RequestInvalid for what isn't JSON, ConfigurationInvalid for a file that can't be read.
 */
export async function readRequest(file: string): Promise<unknown> {
  const content = file === "-" ? await text(process.stdin) : await contentOf(file);
  if (content.trim() === "") return {};
  try {
    return JSON.parse(content);
  } catch (error) {
    const where = file === "-" ? " on stdin" : "";
    const message = `Invalid JSON${where}: ${error instanceof Error ? error.message : error}`;
    throw new RequestInvalid([{ path: "", message }]);
  }
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigurationInvalid(file, [`can't be read: ${reason}`], { cause });
  }
}
