/** Collects the offers of plugins while they register, and checks what an offer of each kind must have. */

import "reflect-metadata";
import { type DependencyContainer, injectable, container as root } from "tsyringe";
import { z } from "zod";
import { capabilitySchema, dialectFieldProblems, type MarkedValue, siteSchema } from "../contract/index.js";
import { type LoadFailure, messageOf } from "../errors.js";
import { callPure, pluginReturns, rememberOrigin, shapeProblems } from "../plan/index.js";
import {
  type Actor,
  type ActorKind,
  type ActorKinds,
  type BlobsBackend,
  type Dialect,
  type Door,
  type InjectedClass,
  type Log,
  type Offers,
  pluginTokens,
  type Registrar,
  type RunObserver,
  type StoreBackend,
  type ToolPolicy,
} from "../plugin/index.js";

/** An actor, and the plugin that offered it. */
export interface Registration {
  readonly plugin: string;
  readonly kind: ActorKind;
  readonly actor: Actor<never>;
}

/** The fields of `Registrar` that are the same for every plugin. */
export type Surroundings = Pick<Registrar, "log" | "hasTenants" | "upstreamProxy">;

/** Any offer of a plugin, which has a name. */
export interface NamedOffer {
  readonly plugin: string;
  readonly kind: keyof Offers;
  readonly name: string;
}

/** The offers of all plugins, each list in configured order. */
export interface Offered {
  /** The offers of every kind. */
  readonly offers: readonly NamedOffer[];
  readonly registrations: readonly Registration[];
  readonly actors: { readonly [Kind in ActorKind]: readonly ActorKinds[Kind][] };
  readonly observers: readonly RunObserver[];
  readonly store: StoreBackend | undefined;
  readonly blobs: BlobsBackend | undefined;
  readonly dialects: readonly Dialect[];
  readonly doors: readonly Door[];
  readonly toolPolicies: readonly ToolPolicy[];
}

/** One plugin of the configuration, while it registers. */
export interface Registering extends Surroundings {
  readonly plugin: string;
  /** The plugin's package or file in the configuration. Undefined: the plugin is an object in the configuration. */
  readonly package: string | undefined;
  readonly config: unknown;
}

const authorsFix = "its author corrects what register adds; TypeScript reports it too";

/** Takes the offers of plugins, and refuses incomplete ones and duplicates. */
export class OfferCollector implements Offered {
  readonly failures: LoadFailure[] = [];
  readonly offers: NamedOffer[] = [];
  readonly registrations: Registration[] = [];
  readonly actors: { readonly [Kind in ActorKind]: ActorKinds[Kind][] } = {
    sandbox: [],
    executor: [],
    delivery: [],
    harness: [],
    toolSource: [],
    gateway: [],
  };
  readonly observers: RunObserver[] = [];
  store: StoreBackend | undefined;
  blobs: BlobsBackend | undefined;
  readonly dialects: Dialect[] = [];
  readonly doors: Door[] = [];
  readonly toolPolicies: ToolPolicy[] = [];
  /** The credentials that plugins have from other places than their configs. */
  readonly secrets: MarkedValue[] = [];
  /** A container of its own, so that two registries in one process share nothing. */
  readonly #container: DependencyContainer = root.createChildContainer();
  /** How the configuration names each plugin that is a package or a file. */
  readonly #packages = new Map<string, string>();
  /** The first plugin that offered each thing that can be offered only once. */
  readonly #owners = new Map<string, string>();

  /** The registrar that one plugin gets, which works only while the plugin registers. */
  during(registering: Registering, register: (registrar: Registrar) => unknown): unknown {
    const { plugin, config, log, hasTenants, upstreamProxy } = registering;
    if (registering.package !== undefined) this.#packages.set(plugin, registering.package);
    const container = pluginContainer(this.#container, plugin, config, log);
    let over = false;
    try {
      return register({
        log: container.resolve(pluginTokens.log),
        hasTenants,
        upstreamProxy,
        secret: (value, kind = "credential") => {
          if (value !== undefined) this.secrets.push({ kind, value });
        },
        add: (kind, offered) => {
          if (over)
            throw new Error(
              `Plugin '${plugin}' offers the ${kind} '${offered.name}' after it has registered.`,
            );
          // A plugin in JavaScript has no compiler that refuses an unknown kind.
          if (!Object.hasOwn(this.#accept, kind)) {
            const kinds = Object.keys(this.#accept).join(", ");
            const reason = `adds a '${String(kind)}', and there is no such kind: a plugin adds one of ${kinds}`;
            this.failures.push({ plugin, reason, fix: authorsFix });
            return;
          }
          const offer = typeof offered === "function" ? construct(container, offered) : offered;
          if (this.#isWhole(registering, kind, offer)) this.#accept[kind](plugin, offer);
        },
      });
    } finally {
      over = true;
    }
  }

  readonly #accept: { readonly [Kind in keyof Offers]: (plugin: string, offer: Offers[Kind]) => void } = {
    sandbox: (plugin, actor) => {
      if (this.#namesDomains(plugin, actor)) this.#addActor(plugin, "sandbox", actor);
    },
    executor: (plugin, actor) => this.#addActor(plugin, "executor", actor),
    delivery: (plugin, actor) => {
      if (this.#namesDomains(plugin, actor)) this.#addActor(plugin, "delivery", actor);
    },
    harness: (plugin, actor) => this.#addActor(plugin, "harness", actor),
    toolSource: (plugin, actor) => this.#addActor(plugin, "toolSource", actor),
    gateway: (plugin, actor) => this.#addActor(plugin, "gateway", actor),
    observer: (plugin, observer) => {
      const offer = `the observer '${observer.name}'`;
      if (!this.#isFirst(plugin, offer, { offer, fix: "load only one of them" })) return;
      this.observers.push(observer);
      this.offers.push({ plugin, kind: "observer", name: observer.name });
    },
    store: (plugin, store) => {
      const offer = `the store '${store.name}'`;
      if (!this.#isFirst(plugin, "store", { offer, fix: this.#withoutFix(plugin) })) return;
      this.store = store;
      this.offers.push({ plugin, kind: "store", name: store.name });
    },
    blobs: (plugin, blobs) => {
      const offer = `the blobs '${blobs.name}'`;
      if (!this.#isFirst(plugin, "blobs", { offer, fix: this.#withoutFix(plugin) })) return;
      this.blobs = blobs;
      this.offers.push({ plugin, kind: "blobs", name: blobs.name });
    },
    dialect: (plugin, dialect) => {
      const offer = `the dialect '${dialect.name}'`;
      if (!this.#isFirst(plugin, offer, { offer, fix: "load only one of them" })) return;
      const earlier = this.dialects.map(({ fields = {} }) => fields);
      const problems = dialectFieldProblems(dialect.fields ?? {}, earlier);
      if (problems.length > 0) {
        const reason = `${offer} adds fields that requests can't have: ${problems.join("; ")}`;
        this.failures.push({ plugin, reason, fix: authorsFix });
        return;
      }
      this.dialects.push(dialect);
      this.offers.push({ plugin, kind: "dialect", name: dialect.name });
    },
    door: (plugin, door) => {
      const offer = `the door '${door.name}'`;
      if (!this.#isFirst(plugin, offer, { offer, fix: "load only one of them" })) return;
      this.doors.push(door);
      this.offers.push({ plugin, kind: "door", name: door.name });
    },
    toolPolicy: (plugin, policy) => {
      const offer = `the tool policy '${policy.name}'`;
      if (!this.#isFirst(plugin, offer, { offer, fix: "load only one of them" })) return;
      this.toolPolicies.push(policy);
      this.offers.push({ plugin, kind: "toolPolicy", name: policy.name });
    },
  };

  /** What an actor touches whatever it is used for is already known. */
  #namesDomains(plugin: string, actor: Actor): boolean {
    try {
      callPure(actor, "touches", pluginReturns.domains, () => actor.touches());
      return true;
    } catch (error) {
      const fix = "its author returns domains from touches(): a list, possibly empty";
      this.failures.push({ plugin, reason: messageOf(error).replace(/\.$/, ""), fix, cause: error });
      return false;
    }
  }

  #addActor<Kind extends ActorKind>(plugin: string, kind: Kind, actor: ActorKinds[Kind]): void {
    const offer = keyOf(kind, actor);
    const fix = "load only one of them, or rename one in its config";
    if (!this.#isFirst(plugin, offer, { offer, fix })) return;
    this.registrations.push({ plugin, kind, actor });
    this.offers.push({ plugin, kind, name: actor.name });
    this.actors[kind].push(actor);
  }

  /** Whether an offer has the interface of its kind. All its problems are one failure, beside those of other offers. */
  #isWhole<Kind extends keyof Offers>(
    { plugin, package: from }: Registering,
    kind: Kind,
    offer: Offers[Kind],
  ): boolean {
    const problems = offerProblems(kind, offer);
    if (problems !== undefined) {
      const named = typeof offer?.name === "string" ? ` '${offer.name.slice(0, 100)}'` : "";
      this.failures.push({ plugin, reason: `its ${kind}${named} isn't one: ${problems}`, fix: authorsFix });
      return false;
    }
    rememberOrigin(offer, { plugin, package: from, kind });
    return true;
  }

  /** The fix for a duplicate. Default plugins come after those that a configuration names, so the later one can be left out. */
  #withoutFix(plugin: string): string {
    const from = this.#packages.get(plugin) ?? plugin;
    return `load only one of them: leave out a default plugin by without: [${JSON.stringify(from)}], or remove one from plugins`;
  }

  #isFirst(plugin: string, key: string, { offer, fix }: { offer: string; fix: string }): boolean {
    const owner = this.#owners.get(key);
    if (owner === undefined) this.#owners.set(key, plugin);
    else {
      const reason = `offers ${offer}, ${key === offer ? `which ${owner} already offers` : `and ${owner} already offers one`}`;
      this.failures.push({ plugin, reason, fix });
    }
    return owner === undefined;
  }
}

/** Actors that do the same work collide even with different names; others are identified by their names. */
function keyOf(kind: ActorKind, actor: ActorKinds[ActorKind]): string {
  if ("connection" in actor) return `the toolSource for ${actor.connection}`;
  if ("kind" in actor) return `the executor of kind '${actor.kind}'`;
  return "id" in actor ? `the ${kind} '${actor.id}'` : `the ${kind} '${actor.name}'`;
}

/** A container with the tokens that one plugin's classes can inject. */
function pluginContainer(
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

/** @throws Error if a constructor parameter names no token, or one that plugins don't have. */
function construct<Offer>(container: DependencyContainer, offeredClass: InjectedClass<Offer>): Offer {
  const tokens: object = Reflect.getOwnMetadata("injectionTokens", offeredClass) ?? {};
  const named = Object.keys(tokens).length;
  const missing = Array.from({ length: named === 0 ? offeredClass.length : named }, (_, at) => at).find(
    (at) => !(at in tokens),
  );
  if (missing !== undefined) {
    throw new Error(
      `parameter ${missing + 1} of the constructor of ${offeredClass.name} names no token: write @inject(pluginTokens.config) or @inject(pluginTokens.log) before it`,
    );
  }
  // Registers the class with this copy of tsyringe, even if its decorators came from another.
  injectable()(offeredClass);
  return container.resolve(offeredClass);
}

function logOf(plugin: string, log: Log): Log {
  return {
    debug: (fields, message) => log.debug({ plugin, ...fields }, message),
    info: (fields, message) => log.info({ plugin, ...fields }, message),
    warn: (fields, message) => log.warn({ plugin, ...fields }, message),
    error: (fields, message) => log.error({ plugin, ...fields }, message),
  };
}

/** The most characters of a name, which errors, events and metrics repeat. */
const maxNameCharacters = 200;

const name = z.string().min(1).max(maxNameCharacters);
const method = z.custom((value) => typeof value === "function", {
  error: ({ input }) => (input === undefined ? "is required: a method" : "must be a method"),
});
const optionalMethod = method.optional();
const methods = <Name extends string>(...required: Name[]) =>
  z.looseObject(Object.fromEntries(required.map((name) => [name, method])));
const object = z.looseObject({});

const actor = {
  name,
  site: siteSchema,
  claims: z.array(capabilitySchema),
  touches: method,
  gaps: method,
  probe: method,
  dependsOn: optionalMethod,
};

/** Every member of every kind of offer: one that isn't here doesn't compile. */
const members: { readonly [Kind in keyof Offers]: { readonly [Member in keyof Offers[Kind]]-?: z.ZodType } } =
  {
    sandbox: {
      ...actor,
      site: z.literal("sandbox"),
      rootfs: z.enum(["host", "image", "image-with-mounts"]).optional(),
      image: z.string().min(1).optional(),
      opensFolders: z.literal(true).optional(),
      hides: optionalMethod,
      reads: optionalMethod,
      madeConnection: optionalMethod,
      open: method,
      takeover: methods("takeOver", "discard").optional(),
      discardRemains: optionalMethod,
      layers: methods("system", "supports", "has").optional(),
      close: optionalMethod,
    },
    executor: { ...actor, kind: name, issues: method, prepare: optionalMethod, execute: method },
    delivery: { ...actor, publish: method },
    harness: {
      ...actor,
      id: name,
      aliases: z.array(name),
      supportsPermissionRequests: z.boolean(),
      ownTools: object.optional(),
      skillsFolder: z.string().min(1).optional(),
      maxToolCallMs: z.number().positive(),
      installation: methods("installed", "install").optional(),
      issues: method,
      model: optionalMethod,
      directModelGaps: optionalMethod,
      requiredPaths: method,
      visibleCredentials: method,
      hideableCredentials: optionalMethod,
      start: method,
      prewarm: z.array(object).optional(),
      prepare: optionalMethod,
    },
    toolSource: { ...actor, connection: z.enum(["http", "stdio"]), issues: method, connect: method },
    gateway: { ...actor, issues: method, unpriced: method, open: method },
    observer: {
      name,
      observe: method,
      refused: optionalMethod,
      lost: optionalMethod,
      posted: optionalMethod,
      prewarmed: optionalMethod,
      logged: optionalMethod,
      watch: optionalMethod,
      scrape: optionalMethod,
      close: optionalMethod,
    },
    store: { name, open: method },
    blobs: { name, open: method },
    dialect: {
      name,
      translate: method,
      keys: z.record(z.string(), z.array(z.string())),
      fields: z.record(z.string(), object).optional(),
      command: optionalMethod,
      harnesses: z.record(z.string(), z.string()).optional(),
      tokenHeaders: z.array(z.string()).optional(),
      differences: z.array(object).optional(),
    },
    door: {
      name: z
        .string()
        .max(maxNameCharacters)
        .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "must be letters, digits and hyphens"),
      routes: z
        .array(
          z.looseObject({
            method: z.enum(["GET", "POST", "DELETE"]),
            path: z.string().startsWith("/"),
            summary: z.string().min(1),
            handle: method,
          }),
        )
        .optional(),
      stdio: optionalMethod,
    },
    toolPolicy: { name, issues: method, forRun: method },
  };

/** The problems of an offer with its kind's interface and the vocabularies of capabilities and sites; undefined for none. */
function offerProblems(kind: keyof Offers, offer: unknown): string | undefined {
  const shape = z.looseObject(members[kind]);
  const read = shape.safeParse(offer);
  if (!read.success) return shapeProblems(read.error, shape, offer, { all: true });
  if (kind === "door") return foreignPath(read.data);
  if (kind !== "harness" || read.data.prewarm === undefined || read.data.prepare !== undefined)
    return undefined;
  return "prepare is required, since there is prewarm: a method";
}

const doorPaths = z.looseObject({
  name: z.string(),
  routes: z.array(z.looseObject({ path: z.string() })).default([]),
});

/** The problem of the first route of a door whose path doesn't begin with the door's name; undefined for none. */
function foreignPath(door: unknown): string | undefined {
  const { name, routes } = doorPaths.parse(door);
  const foreign = routes.findIndex(({ path }) => path !== `/${name}` && !path.startsWith(`/${name}/`));
  return foreign === -1 ? undefined : `routes[${foreign}].path must be /${name}, or begin with /${name}/`;
}
