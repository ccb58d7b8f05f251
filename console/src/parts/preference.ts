import { useSyncExternalStore } from "react";

/** A choice that this browser keeps. The first of its values is the default. */
export class Preference<const Value extends string> {
  readonly #listeners = new Set<() => void>();

  constructor(
    readonly place: string,
    readonly values: readonly [Value, ...Value[]],
  ) {}

  readonly current = (): Value => {
    const stored = localStorage.getItem(this.place);
    return this.values.find((value) => value === stored) ?? this.values[0];
  };

  set(value: Value): void {
    localStorage.setItem(this.place, value);
    for (const listener of this.#listeners) listener();
  }

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
}

export function usePreference<Value extends string>(preference: Preference<Value>): Value {
  return useSyncExternalStore(preference.subscribe, preference.current);
}
