import { inOffer, type PluginOffer } from "@ambit/core";

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
