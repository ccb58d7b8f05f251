import type { InjectionToken } from "tsyringe";
import type { ActorKind, ActorKinds } from "../plugin/index.js";

/** The container's tokens for the actors of each kind. */
export const actorTokens: { readonly [Kind in ActorKind]: InjectionToken<ActorKinds[Kind]> } = {
  sandbox: Symbol.for("ambit.sandbox"),
  executor: Symbol.for("ambit.executor"),
  delivery: Symbol.for("ambit.delivery"),
  harness: Symbol.for("ambit.harness"),
  toolSource: Symbol.for("ambit.toolSource"),
  gateway: Symbol.for("ambit.gateway"),
};
