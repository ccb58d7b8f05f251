import { readFileSync } from "node:fs";
import { messageOf } from "@ambit/core";
import { signerOf } from "@ambit/workspace";
import { ConfigurationInvalid } from "./problems.js";

const fix = "name an Ed25519 key without a passphrase, as `ssh-keygen -t ed25519 -N ''` makes it";

/** Read once, when the server starts. @throws ConfigurationInvalid for one that can't be used */
export function signerIn(file: string | undefined): ReturnType<typeof signerOf> | undefined {
  if (file === undefined) return undefined;
  try {
    return signerOf(readFileSync(file, "utf8"));
  } catch (cause) {
    const reason = `${file} can't be used (${messageOf(cause)}): ${fix}`;
    throw new ConfigurationInvalid("workspace.signingKeyFile", [reason], { cause });
  }
}
