import { AmbitError } from "@ambit/client";
import { HomeMissing, isAmbitError, loadFailureLine, PluginLoadFailed } from "@ambit/core";
import { ConfigurationInvalid } from "../configuration/problems.js";
import { printable } from "../logging/printable.js";
import { exitCodes, isClosedPipe } from "./exit-codes.js";
import { CommandRefused, lineOf } from "./server-client.js";

/** Prints why a command couldn't start, one line per problem. Returns the exit code. */
export function explain(error: unknown, output: { write(text: string): unknown }): number {
  if (isClosedPipe(error)) return exitCodes.outputClosed;
  for (const line of linesOf(error)) output.write(`ambit: ${printable(line)}\n`);
  return exitCodes.usage;
}

function linesOf(error: unknown): readonly string[] {
  if (error instanceof ConfigurationInvalid) {
    return error.problems.map((problem) => `${error.where}: ${problem}`);
  }
  if (error instanceof PluginLoadFailed) {
    return error.failures.map(loadFailureLine);
  }
  if (error instanceof AmbitError) return [lineOf(error)];
  if (error instanceof CommandRefused || error instanceof HomeMissing || isAmbitError(error))
    return [error.message];
  return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}
