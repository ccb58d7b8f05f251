import type { RunRequest } from "@ambit/core/plugin";

/** A pure function of a request and something else, computed once for each pair, and forgotten with them. */
export class Remembered<Other extends WeakKey, Result extends WeakKey> {
  readonly #compute: (request: RunRequest, other: Other) => Result;
  readonly #known = new WeakMap<RunRequest, WeakMap<Other, Result>>();

  constructor(compute: (request: RunRequest, other: Other) => Result) {
    this.#compute = compute;
  }

  of(request: RunRequest, other: Other): Result {
    let results = this.#known.get(request);
    if (results === undefined) {
      results = new WeakMap();
      this.#known.set(request, results);
    }
    const known = results.get(other);
    if (known !== undefined) return known;
    const result = this.#compute(request, other);
    results.set(other, result);
    return result;
  }
}
