import type { InjectionToken } from "tsyringe";
import type { ActorKind, ActorKinds } from "../plugin/index.js";

/** Where the container keeps the actors of each kind. Symbols: a plugin can't collide with a name of ours. */
export const actorTokens: { readonly [Kind in ActorKind]: InjectionToken<ActorKinds[Kind]> } = {
  sandbox: Symbol.for("ambit.sandbox"),
  executor: Symbol.for("ambit.executor"),
  delivery: Symbol.for("ambit.delivery"),
  harness: Symbol.for("ambit.harness"),
  toolSource: Symbol.for("ambit.toolSource"),
  gateway: Symbol.for("ambit.gateway"),
};
