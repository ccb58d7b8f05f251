import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { messageOf } from "@ambit/core";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../configuration/problems.js";
import { parseJson } from "../results.js";

/**
 * The request of a file, or of stdin for `-`, as JSON.
 * @param otherwise what else the caller may have meant by the name of a file that isn't there.
 * @throws MalformedJson, ConfigurationInvalid for a file that can't be read.
 */
export async function readRequest(file: string, otherwise = ""): Promise<unknown> {
  return parseJson(await readText(file, otherwise), file === "-" ? " on stdin" : ` in ${file}`);
}

/** The text of a file, or of stdin for `-`. @throws ConfigurationInvalid for a file that can't be read. */
export function readText(file: string, otherwise = ""): Promise<string> {
  return file === "-" ? text(process.stdin) : contentOf(file, otherwise);
}

async function contentOf(file: string, otherwise: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const problem =
      codeOf(cause) === "ENOENT" ? `there is no such file${otherwise}` : `can't be read: ${messageOf(cause)}`;
    throw new ConfigurationInvalid(file, [problem], { cause });
  }
}

/** What a person typed as a value: JSON, or else a text. */
export function jsonOrText(typed: string): unknown {
  try {
    return parseJson(typed);
  } catch {
    return typed;
  }
}
