import "reflect-metadata";
import { type DependencyContainer, injectable } from "tsyringe";
import { type InjectedClass, type Log, pluginTokens } from "../plugin/index.js";

/** A container with what one plugin's classes are given. */
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

/** @throws Error where a parameter of the constructor names no token, or one that a plugin isn't given. */
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
  // Known to this copy of tsyringe, whichever copy its decorators came from.
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
