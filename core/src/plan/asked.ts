import { isAmbitError, PluginBrokeContract } from "../errors.js";

/**
 * Calls a pure method of an actor. Anything that it throws is a bug of its plugin.
 *
 * @throws PluginBrokeContract with the actor's name and the method's.
 */
export function asked<Answer>(actor: { readonly name: string }, method: string, ask: () => Answer): Answer {
  try {
    return ask();
  } catch (thrown) {
    if (isAmbitError(thrown)) throw thrown;
    const message = `'${actor.name}' threw in ${method}(), which must be pure and never throw; the runner's log has the cause.`;
    throw new PluginBrokeContract(message, { cause: thrown });
  }
}
