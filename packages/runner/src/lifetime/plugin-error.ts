import { type AmbitError, isAmbitError, PluginBrokeContract } from "@ambit/core";

/** Runs an actor's step. An error of the catalogue is rethrown unchanged; any other one breaks the plugin's contract. */
export async function callPlugin<Result>(who: string, step: () => Promise<Result>): Promise<Result> {
  try {
    return await step();
  } catch (thrown) {
    throw asPluginError(who, thrown);
  }
}

/** @param who as in `Sandbox 'local'`. */
export function asPluginError(who: string, thrown: unknown): AmbitError {
  if (isAmbitError(thrown)) return thrown;
  const message = `${who} threw an error that isn't one of Ambit's; the runner's log has the cause.`;
  return new PluginBrokeContract(message, { cause: thrown });
}
