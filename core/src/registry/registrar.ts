import type { DependencyContainer } from "tsyringe";
import type { LoadFailure } from "../errors.js";
import {
  type Actor,
  type ActorKind,
  type ActorKinds,
  type Log,
  type Offers,
  pluginTokens,
  type Registrar,
  type RunObserver,
  type StoreBackend,
} from "../plugin/index.js";
import { construct, pluginContainer } from "./construct.js";
import { actorTokens } from "./tokens.js";

/** What one plugin offered. */
export interface Registration {
  readonly plugin: string;
  readonly kind: ActorKind;
  readonly name: string;
  readonly actor: Actor<never>;
}

/** Members of actors that had another name in an earlier version. */
const renamedMembers: ReadonlyMap<string, string> = new Map([
  ["covers", "gaps"],
  ["asksForOwnTools", "supportsPermissionRequests"],
  ["holdsCallsMs", "maxToolCallMs"],
  ["programs", "rootfs"],
  ["runtimes", "requiredPaths"],
]);

/** Puts actors into the container, remembers whose they are, and refuses doubles. */
export class ContainerRegistrar {
  readonly #registrations = new Map<string, Registration>();
  readonly failures: LoadFailure[] = [];
  readonly #observers = new Map<string, { readonly plugin: string; readonly observer: RunObserver }>();
  #store: { readonly plugin: string; readonly backend: StoreBackend } | undefined;

  constructor(readonly container: DependencyContainer) {}

  get registrations(): readonly Registration[] {
    return [...this.#registrations.values()];
  }

  get observers(): readonly RunObserver[] {
    return [...this.#observers.values()].map(({ observer }) => observer);
  }

  get store(): StoreBackend | undefined {
    return this.#store?.backend;
  }

  /** The registrar that one plugin gets to see, while it registers and no longer. */
  during(
    plugin: string,
    { config, log }: { readonly config: unknown; readonly log: Log },
    register: (registrar: Registrar) => unknown,
  ): unknown {
    const container = pluginContainer(this.container, plugin, config, log);
    let over = false;
    try {
      return register({
        log: container.resolve(pluginTokens.log),
        add: (kind, given) => {
          if (over)
            throw new Error(`Plugin '${plugin}' offers the ${kind} '${given.name}' after it has registered.`);
          const offered: keyof Offers = kind;
          const offer = typeof given === "function" ? construct(container, given) : given;
          if (isStore(offered, offer)) this.#addStore(plugin, offer);
          else if (isObserver(offered, offer)) this.#addObserver(plugin, offer);
          else if (isActorKind(offered) && isActor(offered, offer)) this.#add(plugin, offered, offer);
        },
      });
    } finally {
      over = true;
    }
  }

  #addObserver(plugin: string, observer: RunObserver): void {
    const first = this.#observers.get(observer.name);
    if (first === undefined) {
      this.#observers.set(observer.name, { plugin, observer });
      return;
    }
    this.failures.push({
      plugin,
      reason: `offers the observer '${observer.name}', which ${first.plugin} already offers`,
      fix: "load only one of them",
    });
  }

  #addStore(plugin: string, backend: StoreBackend): void {
    if (this.#store === undefined) {
      this.#store = { plugin, backend };
      return;
    }
    this.failures.push({
      plugin,
      reason: `offers the store '${backend.name}', and ${this.#store.plugin} already offers one`,
      fix: "load only one of them",
    });
  }

  #add(plugin: string, kind: ActorKind, actor: ActorKinds[ActorKind]): void {
    const key = keyOf(kind, actor);
    const renamed = [...renamedMembers].filter(([older, now]) => older in actor && !(now in actor));
    for (const [older, now] of renamed) {
      this.failures.push({
        plugin,
        reason: `${key} has ${older}, whose name is now ${now}`,
        fix: `rename ${older} to ${now} in the plugin, or install a version of it that has ${now}`,
      });
    }
    if (renamed.length > 0) return;
    const first = this.#registrations.get(key);
    if (first !== undefined) {
      this.failures.push({
        plugin,
        reason: `offers ${key}, which ${first.plugin} already offers`,
        fix: "load only one of them, or rename one in its config",
      });
      return;
    }
    this.#registrations.set(key, { plugin, kind, name: actor.name, actor });
    this.container.register(actorTokens[kind], { useValue: actor });
  }
}

/** Two that would do the same work collide, whatever they are called; else an actor is known by its name. */
function keyOf(kind: ActorKind, actor: ActorKinds[ActorKind]): string {
  if ("connection" in actor) return `the toolSource for ${actor.connection}`;
  if ("kind" in actor) return `the executor of kind '${actor.kind}'`;
  return "id" in actor ? `the ${kind} '${actor.id}'` : `the ${kind} '${actor.name}'`;
}

function isStore(kind: keyof Offers, offer: Offers[keyof Offers]): offer is StoreBackend {
  return kind === "store" && offer !== undefined;
}

function isObserver(kind: keyof Offers, offer: Offers[keyof Offers]): offer is RunObserver {
  return kind === "observer" && offer !== undefined;
}

function isActorKind(kind: keyof Offers): kind is ActorKind {
  return kind !== "store" && kind !== "observer";
}

function isActor(kind: ActorKind, offer: Offers[keyof Offers]): offer is ActorKinds[ActorKind] {
  return isActorKind(kind) && offer !== undefined;
}
