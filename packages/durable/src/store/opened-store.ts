import { PluginBrokeContract } from "@ambit/core";
import type { StoreBackend } from "@ambit/core/plugin";
import type { Store } from "./store.js";

/** Each method of a store: the compiler names one that is missing here. */
const methods: Readonly<Record<keyof Store, true>> = {
  create: true,
  createWithin: true,
  createQueued: true,
  usage: true,
  tallies: true,
  claim: true,
  keepRecovery: true,
  nextQueued: true,
  append: true,
  finish: true,
  get: true,
  list: true,
  heads: true,
  read: true,
  requestCancel: true,
  delete: true,
  retain: true,
  join: true,
  renew: true,
  drain: true,
  supersede: true,
  leave: true,
  abandoned: true,
  takeOver: true,
  interactions: true,
  answer: true,
  nameAnswerer: true,
  claimAnswer: true,
  settleAnswer: true,
  dropAnswer: true,
  expiring: true,
  expire: true,
  holdSession: true,
  keepSession: true,
  releaseSession: true,
  endSession: true,
  keepUse: true,
  sessions: true,
  takeDeliveries: true,
  settleDelivery: true,
  redeliver: true,
  deliveries: true,
  backlog: true,
  close: true,
};

/**
 * What a plugin's backend opened, as a store.
 *
 * @throws PluginBrokeContract where it lacks a method: the plugin is of another version.
 */
export function openedStore({ name }: StoreBackend, opened: unknown): Store {
  if (isStore(opened)) return opened;
  const fix = "install a version of its plugin that fits this Ambit";
  throw new PluginBrokeContract(`The store '${name}' lacks ${missingIn(opened).join(", ")}: ${fix}.`);
}

function isStore(opened: unknown): opened is Store {
  return missingIn(opened).length === 0;
}

function missingIn(opened: unknown): readonly string[] {
  const names = Object.keys(methods);
  if (typeof opened !== "object" || opened === null) return names;
  return names.filter((name) => typeof Reflect.get(opened, name) !== "function");
}
