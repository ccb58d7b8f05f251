import { readFileSync } from "node:fs";
import { messageOf } from "@ambit/core";
import { signerOf } from "@ambit/workspace";

/** Read once, when the server starts. @throws Error that names the setting */
export function signerIn(file: string | undefined): ReturnType<typeof signerOf> | undefined {
  if (file === undefined) return undefined;
  try {
    return signerOf(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`workspace.signingKeyFile names ${file}, which can't be used: ${messageOf(error)}`);
  }
}
