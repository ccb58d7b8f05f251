import { isAmbitError, PluginBrokeContract } from "../errors.js";

/**
 * Calls a pure method of something that a plugin offers. Anything that it throws is a bug of its plugin.
 *
 * @throws PluginBrokeContract with its name and the method's.
 */
export function callPure<Result>(
  offer: { readonly name: string },
  method: string,
  call: () => Result,
): Result {
  try {
    return call();
  } catch (thrown) {
    if (isAmbitError(thrown)) throw thrown;
    const message = `'${offer.name}' threw in ${method}(), which must be pure and never throw; the runner's log has the cause.`;
    throw new PluginBrokeContract(message, { cause: thrown });
  }
}
