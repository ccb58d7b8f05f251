import { realpath } from "node:fs/promises";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { printableLine } from "../../logging/printable.js";
import { FolderSnapshot } from "../by-hand/in-place/folder-snapshot.js";
import { exitCodes } from "../exit-codes.js";

/** Paths that are named. */
const maxNamed = 20;

/** `ambit undo`: brings a folder back to what it was before the last run that worked in it. @returns the exit code */
export async function undo(given: string): Promise<number> {
  const folder = await realpath(given).catch((cause: unknown) => {
    throw new ConfigurationInvalid(given, [`can't be read: ${codeOf(cause) ?? String(cause)}`], { cause });
  });
  const { restored, left } = await FolderSnapshot.of(folder).restore();
  const print = (text: string) => process.stdout.write(`${text}\n`);
  for (const path of left.slice(0, maxNamed))
    print(`left as it is: ${printableLine(path)}: it isn't as the run left it`);
  if (left.length > maxNamed) print(`left as they are: ${left.length - maxNamed} more`);
  print(`brought ${restored} ${restored === 1 ? "path" : "paths"} of ${folder} back`);
  return left.length === 0 ? exitCodes.ok : exitCodes.runFailed;
}
