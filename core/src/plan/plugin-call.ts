import { AsyncLocalStorage } from "node:async_hooks";
import type { z } from "zod";
import { knownShapeOf, readableIssues } from "../contract/index.js";
import { type AmbitError, isAmbitError, PluginBrokeContract } from "../errors.js";

/** The plugin that made an offer. */
export interface PluginOrigin {
  /** As the plugin names itself. */
  readonly plugin: string;
  /** Its package or file, as the configuration names it. Absent: an object in the configuration. */
  readonly package?: string | undefined;
  /** The kind of the offer: `executor`, `store`; `plugin` for the plugin itself, which registers. */
  readonly kind: string;
}

/** A plugin, or anything that one offers: an actor, an observer, a store, a dialect. */
export interface PluginOffer {
  readonly name: string;
}

/** By offer. It outlives no offer, and a plan of offers that no registry loaded has no origins. */
const origins = new WeakMap<object, PluginOrigin>();
const underWay = new AsyncLocalStorage<PluginOffer | undefined>();

/** Remembers which plugin made an offer, so that its faults name it. */
export function rememberOrigin(offer: PluginOffer, origin: PluginOrigin): void {
  origins.set(offer, origin);
}

export function originOf(offer: PluginOffer): PluginOrigin | undefined {
  return origins.get(offer);
}

const titles: Readonly<Record<string, string>> = {
  toolSource: "Tool source",
  toolPolicy: "Tool policy",
  gateway: "Model gateway",
  blobs: "Place for files",
};

/** An offer as errors name it: `Executor 'clock' of the plugin 'ambit-clock' (./clock.mjs)`. */
export function offerTitle(offer: PluginOffer): string {
  const origin = origins.get(offer);
  if (origin === undefined) return `'${offer.name}'`;
  const { kind } = origin;
  const title = titles[kind] ?? `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
  const from = origin.package === undefined ? "" : ` (${origin.package})`;
  if (kind === "plugin") return `${title} '${offer.name}'${from}`;
  return `${title} '${offer.name}' of the plugin '${origin.plugin}'${from}`;
}

/** Calls something of an offer. What that starts, and what becomes of it later, is the offer's: see {@link offerUnderWay}. */
export function inOffer<Result>(offer: PluginOffer, call: () => Result): Result {
  return underWay.run(offer, call);
}

/** Calls something of Ambit's own that an offer calls. */
export function outsideOffers<Result>(call: () => Result): Result {
  return underWay.run(undefined, call);
}

/** The offer whose code runs, or whose timer, process or promise is the cause of what runs. Undefined in Ambit's own. */
export function offerUnderWay(): PluginOffer | undefined {
  return underWay.getStore();
}

/**
 * The object, each method of which runs as its plugin's: an error that it leaves unhandled names the plugin. Its methods keep
 * their own `this`, since it may be of a class with private fields.
 *
 * @param instead methods in place of its own. Default: none.
 */
export function ofOffer<Value extends object>(
  offer: PluginOffer,
  value: Value,
  instead: Partial<Value> = {},
): Value {
  return new Proxy(value, {
    get(target, name) {
      if (Object.hasOwn(instead, name)) return Reflect.get(instead, name);
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...given: unknown[]) => inOffer(offer, () => Reflect.apply(member, target, given));
    },
  });
}

/**
 * Calls a pure method of something that a plugin offers, and checks what it returns. Anything else than what `returns`
 * describes is a bug of its plugin, and so is anything that it throws.
 *
 * @throws PluginBrokeContract with the names of the plugin and the method, and what was wrong.
 */
export function callPure<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  call: () => unknown,
): z.output<Returns> {
  let returned: unknown;
  try {
    returned = inOffer(offer, call);
  } catch (thrown) {
    if (isAmbitError(thrown)) throw thrown;
    const message = `${offerTitle(offer)} threw in ${method}(), which must be pure and never throw; the runner's log has the cause.`;
    throw new PluginBrokeContract(message, { cause: thrown });
  }
  if (isThenable(returned)) {
    // A later rejection has no reader, and must not end the process.
    returned.then(undefined, () => undefined);
    throw new PluginBrokeContract(
      `${offerTitle(offer)} returned a promise from ${method}(), which must be synchronous.`,
    );
  }
  return checkedReturn(offer, method, returns, returned);
}

/**
 * Runs a step of something that a plugin offers, and checks what it resolves with. An error of the catalogue is rethrown
 * unchanged; any other one breaks the plugin's contract, and so does anything else than what `returns` describes.
 *
 * @param method as errors name it: `open`.
 */
export async function callPlugin<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  step: () => Promise<unknown>,
): Promise<z.output<Returns>> {
  try {
    return checkedReturn(offer, method, returns, await inOffer(offer, step));
  } catch (thrown) {
    throw asPluginError(offerTitle(offer), thrown);
  }
}

/** @param who as in `Sandbox 'local' of the plugin 'sandbox-local'`. */
export function asPluginError(who: string, thrown: unknown): AmbitError {
  if (isAmbitError(thrown)) return thrown;
  const message = `${who} threw an error that isn't one of Ambit's; the runner's log has the cause.`;
  return new PluginBrokeContract(message, { cause: thrown });
}

/**
 * What a method of an offer returned, or resolved with, if it has the shape. A value of it is never repeated.
 *
 * @throws PluginBrokeContract with the names of the plugin and the method, and what was wrong.
 */
export function checkedReturn<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  returned: unknown,
): z.output<Returns> {
  const read = returns.safeParse(returned);
  if (read.success) return read.data;
  const problems = shapeProblems(read.error, returns, returned);
  const what = returned === undefined ? "nothing" : "what it must not";
  throw new PluginBrokeContract(`${offerTitle(offer)} returned ${what} from ${method}(): ${problems}.`);
}

/** Problems that one message names. */
const maxProblems = 3;

/**
 * What a value lacks of a shape, as text: "[0].capability is required: one of …". Pure.
 *
 * @param options `all`: every problem. Default: the first three.
 */
export function shapeProblems(
  { issues }: z.ZodError,
  shape: z.ZodType,
  value: unknown,
  { all = false }: { readonly all?: boolean } = {},
): string {
  const level = knownShapeOf(shape);
  const problems = readableIssues(issues, { value, level, path: [], keyName: "setting" }).map(
    ({ path, message }) => `${path === "" ? "the value" : path} ${message}`,
  );
  const shown = all ? problems : problems.slice(0, maxProblems);
  const further = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : [];
  return [...shown, ...further].join("; ");
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
