import "reflect-metadata";
import { type DependencyContainer, injectable } from "tsyringe";
import { type InjectedClass, type Log, pluginTokens } from "../plugin/index.js";

/** A container with the tokens that one plugin's classes can inject. */
export function pluginContainer(
  root: DependencyContainer,
  plugin: string,
  config: unknown,
  log: Log,
): DependencyContainer {
  const container = root.createChildContainer();
  container.registerInstance(pluginTokens.config, config);
  container.registerInstance(pluginTokens.log, logOf(plugin, log));
  return container;
}

/** @throws Error where a constructor parameter names no token, or one that plugins don't have. */
export function construct<Offer>(container: DependencyContainer, given: InjectedClass<Offer>): Offer {
  const tokens: object = Reflect.getOwnMetadata("injectionTokens", given) ?? {};
  const named = Object.keys(tokens).length;
  const missing = Array.from({ length: named === 0 ? given.length : named }, (_, at) => at).find(
    (at) => !(at in tokens),
  );
  if (missing !== undefined) {
    throw new Error(
      `parameter ${missing + 1} of the constructor of ${given.name} names no token: write @inject(pluginTokens.config) or @inject(pluginTokens.log) before it`,
    );
  }
  // Registers the class with this copy of tsyringe, even if its decorators came from another.
  injectable()(given);
  return container.resolve(given);
}

function logOf(plugin: string, log: Log): Log {
  return {
    debug: (fields, message) => log.debug({ plugin, ...fields }, message),
    info: (fields, message) => log.info({ plugin, ...fields }, message),
    warn: (fields, message) => log.warn({ plugin, ...fields }, message),
    error: (fields, message) => log.error({ plugin, ...fields }, message),
  };
}
