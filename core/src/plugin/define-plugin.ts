import "reflect-metadata";
import { type InjectionToken, inject } from "tsyringe";
import type { z } from "zod";
import type { SecretKind } from "../contract/index.js";
import type { ToolDelivery, ToolSource } from "./kinds/delivery.js";
import type { Dialect, ForeignEnvironment } from "./kinds/dialect.js";
import type { Door } from "./kinds/door.js";
import type { ToolExecutor } from "./kinds/executor.js";
import type { Harness } from "./kinds/harness.js";
import type { ModelGateway } from "./kinds/model-gateway.js";
import type { RunObserver } from "./kinds/observer.js";
import type { SandboxBackend } from "./kinds/sandbox.js";
import type { BlobsBackend, StoreBackend } from "./kinds/store.js";
import type { ToolPolicy } from "./kinds/tool-policy.js";
import type { Log } from "./scope.js";
import type { UpstreamProxy } from "./upstream-proxy.js";

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

/** Decorates a constructor parameter with its token. TypeScript needs `experimentalDecorators` for it. */
export { inject };

/** A class that the registry constructs: each constructor parameter names a token of `pluginTokens`. */
export type InjectedClass<Offer> = Extract<
  InjectionToken<Offer>,
  abstract new (
    ...parameters: never[]
  ) => Offer
>;

/** Tokens are global symbols, so that a plugin that uses another copy of this package has the same ones. */
function token<Value>(name: string): InjectionToken<Value> {
  return Symbol.for(`ambit.plugin.${name}`);
}

/** The kinds of actors, and the interface of each. */
export interface ActorKinds {
  sandbox: SandboxBackend;
  executor: ToolExecutor;
  delivery: ToolDelivery;
  harness: Harness;
  toolSource: ToolSource;
  gateway: ModelGateway;
}
export type ActorKind = keyof ActorKinds;

/**
 * What a plugin may offer: an actor of runs, an observer of them, a store or a place for files (at most one of each), a
 * dialect of requests, a door for clients of another protocol, or a policy on calls of tools.
 */
export interface Offers extends ActorKinds {
  observer: RunObserver;
  store: StoreBackend;
  blobs: BlobsBackend;
  dialect: Dialect;
  door: Door;
  toolPolicy: ToolPolicy;
}

export interface Registrar {
  /**
   * Registers an offer of any kind: an object, or a class that is constructed immediately (see `pluginTokens`). A second
   * offer of the same kind and name, from any plugin, is an error at start.
   */
  add<Kind extends keyof Offers>(kind: Kind, offer: Offers[Kind] | InjectedClass<Offers[Kind]>): void;
  /**
   * Hides a credential in the log that isn't in the config, such as a variable's. The log hides those that the config's
   * schema marks in any case.
   *
   * @param value undefined for a variable that isn't set. @param kind default: `credential`
   */
  secret(value: unknown, kind?: SecretKind): void;
  /** The runner's log; each entry names the plugin. */
  readonly log: Log;
  /** Whether tenants, each with its own token, send requests besides the deployer. */
  readonly hasTenants: boolean;
  /** The deployer's proxy, for the plugin's own connections: see `@ambit/egress/client`. Undefined: there is none. */
  readonly upstreamProxy?: UpstreamProxy | undefined;
}

export interface Plugin<Config extends z.ZodType = z.ZodType> {
  /** The package's name without its scope: `sandbox-local`. Also names it in configuration and errors. */
  readonly name: string;
  /** The version of this interface that the plugin was written for. */
  readonly api: 1;
  /** A strict schema that holds every default; it is published as JSON Schema. */
  readonly config: Config;
  /** Variables of another program that the server reads in place of Ambit's. Default: none. */
  readonly foreignEnvironment?: ForeignEnvironment;
  /** Adds the plugin's offers. Synchronous and without I/O: what needs the host happens in `probe` and `open`. */
  register(registrar: Registrar, config: z.output<Config>): void;
}

/** Infers the type of a plugin's config. The plugin is checked by the registry, when it is loaded. */
export function definePlugin<Config extends z.ZodType>(plugin: Plugin<Config>): Plugin<Config> {
  return Object.freeze(plugin);
}
