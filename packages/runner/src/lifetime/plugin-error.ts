import {
  type AmbitError,
  checkedReturn,
  inOffer,
  isAmbitError,
  offerTitle,
  PluginBrokeContract,
  type PluginOffer,
} from "@ambit/core";
import type { z } from "zod";

/**
 * Runs a step of something that a plugin offers, and checks what it resolves with. An error of the catalogue is rethrown
 * unchanged; any other one breaks the plugin's contract, and so does anything else than what `returns` describes.
 *
 * @param method as errors name it: `open`.
 */
export async function callPlugin<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  step: () => Promise<unknown>,
): Promise<z.output<Returns>> {
  try {
    return checkedReturn(offer, method, returns, await inOffer(offer, step));
  } catch (thrown) {
    throw asPluginError(offerTitle(offer), thrown);
  }
}

/** @param who as in `Sandbox 'local' of the plugin 'sandbox-local'`. */
export function asPluginError(who: string, thrown: unknown): AmbitError {
  if (isAmbitError(thrown)) return thrown;
  const message = `${who} threw an error that isn't one of Ambit's; the runner's log has the cause.`;
  return new PluginBrokeContract(message, { cause: thrown });
}
