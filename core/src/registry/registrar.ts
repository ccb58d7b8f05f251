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

/** Puts what plugins offer into the container, remembers which plugin offered it, and refuses duplicates. */
export class ContainerRegistrar {
  readonly failures: LoadFailure[] = [];
  readonly registrations: Registration[] = [];
  readonly observers: RunObserver[] = [];
  store: StoreBackend | undefined;
  /** The plugin that offered it first, by what can be offered only once. */
  readonly #owners = new Map<string, string>();

  constructor(readonly container: DependencyContainer) {}

  /** The registrar that one plugin gets, which works only while the plugin registers. */
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
          else if (isActorKind(offered) && isActor(offered, offer)) this.#addActor(plugin, offered, offer);
        },
      });
    } finally {
      over = true;
    }
  }

  #addStore(plugin: string, store: StoreBackend): void {
    const offer = `the store '${store.name}'`;
    if (this.#isFirst(plugin, "store", { offer, fix: "load only one of them" })) this.store = store;
  }

  #addObserver(plugin: string, observer: RunObserver): void {
    const offer = `the observer '${observer.name}'`;
    if (this.#isFirst(plugin, offer, { offer, fix: "load only one of them" })) this.observers.push(observer);
  }

  #addActor(plugin: string, kind: ActorKind, actor: ActorKinds[ActorKind]): void {
    const offer = keyOf(kind, actor);
    const renamed = [...renamedMembers].filter(([older, now]) => older in actor && !(now in actor));
    for (const [older, now] of renamed) {
      const reason = `${offer} has ${older}, whose name is now ${now}`;
      const fix = `rename ${older} to ${now} in the plugin, or install a version of it that has ${now}`;
      this.failures.push({ plugin, reason, fix });
    }
    const fix = "load only one of them, or rename one in its config";
    if (renamed.length > 0 || !this.#isFirst(plugin, offer, { offer, fix })) return;
    this.registrations.push({ plugin, kind, name: actor.name, actor });
    this.container.register(actorTokens[kind], { useValue: actor });
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
