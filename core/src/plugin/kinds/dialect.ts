import type { DialectFields, Issue, JsonObject, RunRequest } from "../../contract/index.js";

/**
 * Lets callers of another runner keep the requests that they know. It doesn't act in runs, so it claims nothing and isn't
 * planned: what it returns is validated like any request. What its own fields do beyond that, a tool policy of the same
 * plugin does.
 */
export interface Dialect {
  readonly name: string;
  /** A request in the contract's spelling. Pure and synchronous, in time proportional to the request. */
  translate(request: JsonObject): Translation;
  /**
   * Keys of its requests that the contract doesn't have, by the path of their level, without indices: `""` for the
   * request, `customTools[]`. They are suggested in place of a misspelt key.
   */
  readonly keys: Readonly<Record<string, readonly string[]>>;
  /**
   * Fields of its requests that stay in them: they are validated with the request, and part of the API's description. None
   * carries a credential. Default: none.
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
  /** Headers, in lower case, that carry the server's token without a scheme. Default: none. */
  readonly tokenHeaders?: readonly string[];
  /** What its callers may rely on, and what happens here instead. Default: nothing. */
  readonly differences?: readonly Difference[];
}

/** A command of a platform that a request carries out. */
export interface RequestedCommand {
  /** The field that names it, for messages. */
  readonly field: string;
  /** At most 256 characters. */
  readonly id: string;
}

/** What it doesn't know stays as it is, to be refused or ignored by its path. */
export interface Translation {
  /** The given object itself, where nothing had to be translated. */
  readonly request: JsonObject;
  /** What can't be translated. The request is refused, with all other issues. */
  readonly issues: readonly Issue[];
}

/** A behaviour that callers may rely on, and what happens here instead. For `ambit compat check` and the docs. */
export interface Difference {
  readonly about: string;
  readonly there: string;
  readonly here: string;
  /** Whether it concerns an accepted request. Absent: no request shows whether it does, or it refuses the request. */
  applies?(request: RunRequest): boolean;
}

/**
 * Variables of another program that a deployer may still set. The server reads them before it loads plugins; a value in
 * Ambit's own variable overrides them. Blank ones count as unset.
 */
export interface ForeignEnvironment {
  /** By the variable that Ambit or a plugin reads: those that are read instead. The first one that is set counts. */
  readonly renamed: Readonly<Record<string, readonly string[]>>;
  /** Variables without effect, each with what is set instead: "`limits.toolMs`". The log names those that are set. */
  readonly moved: Readonly<Record<string, string>>;
  /** Further variables without effect. The log names those that are set. */
  readonly others: RegExp;
}
