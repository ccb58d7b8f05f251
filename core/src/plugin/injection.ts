import "reflect-metadata";
import { type InjectionToken, inject } from "tsyringe";
import type { Log } from "./log.js";

/**
 * The tokens that the constructor of a class that a plugin registers can inject:
 * `constructor(@inject(pluginTokens.config) config: Config, @inject(pluginTokens.log) log: Log)`.
 */
export const pluginTokens = {
  /** The runner's log; each entry names the plugin. */
  log: token<Log>("log"),
  /** The plugin's configuration, as its schema returns it. */
  config: token<unknown>("config"),
} as const;

/** Names the token of one constructor parameter. TypeScript needs `experimentalDecorators` for it. */
export { inject };

/** A class that the registry constructs: each constructor parameter names a token of `pluginTokens`. */
export type InjectedClass<Offer> = Extract<InjectionToken<Offer>, abstract new (...given: never[]) => Offer>;

/** A global symbol: a plugin that uses another copy of this package has the same tokens. */
function token<Value>(name: string): InjectionToken<Value> {
  return Symbol.for(`ambit.plugin.${name}`);
}
