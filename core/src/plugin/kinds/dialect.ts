import type { DialectFields, Issue, JsonObject, RunRequest } from "../../contract/index.js";

/**
 * Lets callers of another runner keep their requests. A dialect doesn't act in runs, so it claims nothing and isn't planned:
 * the request that it returns is validated like any other. If its own fields have an effect, a tool policy of the same plugin
 * implements it.
 */
export interface Dialect {
  readonly name: string;
  /** Returns the request in the contract's spelling. Pure and synchronous, in time proportional to the request. */
  translate(request: JsonObject): Translation;
  /**
   * The keys of its requests that the contract doesn't have, by the path of their level without indices: `""` for the
   * request, `customTools[]`. Messages suggest them in place of a misspelt key.
   */
  readonly keys: Readonly<Record<string, readonly string[]>>;
  /**
   * The fields of its requests that stay in the translated request. They are validated with it and appear in the API's
   * description. None carries a credential. Default: none.
   */
  readonly fields?: DialectFields;
  /**
   * The command that a request carries out, in any spelling of the dialect: at most one run per command and project begins
   * within 30 minutes, or while a store keeps its run. A repeated request waits for the first one and gets its result.
   * Undefined for a request without a command, or with one that is refused. Pure and synchronous. Default: no request has one.
   */
  command?(request: JsonObject): RequestedCommand | undefined;
  /** Other names of harnesses, each with the id that it means. Default: none. */
  readonly harnesses?: Readonly<Record<string, string>>;
  /** The headers, in lower case, that carry the server's token without a scheme. Default: none. */
  readonly tokenHeaders?: readonly string[];
  /** Where Ambit behaves differently from the other runner. Default: nowhere. */
  readonly differences?: readonly Difference[];
}

/** A command of a platform that a request carries out. */
export interface RequestedCommand {
  /** The field that names it, for messages. */
  readonly field: string;
  /** At most 256 characters. */
  readonly id: string;
}

/** A translated request. Fields that the dialect doesn't know are unchanged: validation refuses or ignores them by their path. */
export interface Translation {
  /** The same object that was passed in, if nothing had to be translated. */
  readonly request: JsonObject;
  /** The parts that can't be translated. The request is refused with these and all other issues. */
  readonly issues: readonly Issue[];
}

/** A behaviour that callers may rely on, and what Ambit does instead. `ambit compat check` and the docs show it. */
export interface Difference {
  readonly about: string;
  readonly there: string;
  readonly here: string;
  /** Whether it concerns an accepted request. Absent: the request doesn't show that, or the difference is a refusal. */
  applies?(request: RunRequest): boolean;
}

/**
 * Variables of another program that a deployer may still set. The server reads them before it loads plugins; a value in
 * Ambit's own variable overrides them. Blank ones count as unset.
 */
export interface ForeignEnvironment {
  /** The variables to read instead, by the name of Ambit's or the plugin's variable. The first one that is set counts. */
  readonly renamed: Readonly<Record<string, readonly string[]>>;
  /** Variables without effect, each with the setting that replaces it: "`limits.toolMs`". The log names those that are set. */
  readonly moved: Readonly<Record<string, string>>;
  /** Further variables without effect. The log names those that are set. */
  readonly others: RegExp;
}
