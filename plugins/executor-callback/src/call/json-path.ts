/** Dotted paths into JSON objects: `data.inputs`. Nothing here reads or writes what isn't an object's own. */

/** A JSON object that is being put together. */
export type MutableJson = Record<string, unknown>;

/** Keys that lead to an object's prototype. */
const unsafeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

export function isObject(value: unknown): value is MutableJson {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Why a dotted path can't be used; undefined when it can. */
export function pathProblem(path: string): string | undefined {
  const parts = path.split(".");
  if (parts.includes("")) return `'${path}' has an empty part`;
  const unsafe = parts.find((part) => unsafeKeys.has(part));
  return unsafe === undefined ? undefined : `'${path}' must not contain '${unsafe}'`;
}

/** The first key, at any depth, that leads to a prototype. */
export function unsafeKeyIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const unsafe = unsafeKeys.has(key) ? key : unsafeKeyIn(inner);
    if (unsafe !== undefined) return unsafe;
  }
  return undefined;
}

/** Undefined also when some part of the path isn't there. */
export function readPath(source: unknown, path: string): unknown {
  let value = source;
  for (const part of path.split(".")) {
    if (unsafeKeys.has(part) || !isObject(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** Objects in between are made; anything else in between is replaced. @throws TypeError for an unusable path. */
export function writePath(target: MutableJson, path: string, value: unknown): void {
  const { parents, last } = partsOf(path);
  let holder = target;
  for (const part of parents) {
    const inner = Object.hasOwn(holder, part) ? holder[part] : undefined;
    const next: MutableJson = isObject(inner) ? inner : {};
    holder[part] = next;
    holder = next;
  }
  holder[last] = value;
}

/** @throws TypeError for an unusable path. */
export function removePath(target: MutableJson, path: string): void {
  const { parents, last } = partsOf(path);
  const holder = parents.length === 0 ? target : readPath(target, parents.join("."));
  if (isObject(holder)) delete holder[last];
}

/** `overlay` wins; two objects under one key are merged, anything else is replaced. Neither is changed. */
export function overlaid(base: Readonly<MutableJson>, overlay: Readonly<MutableJson>): MutableJson {
  const merged: MutableJson = { ...base };
  for (const [key, value] of Object.entries(overlay)) {
    const under = Object.hasOwn(merged, key) ? merged[key] : undefined;
    merged[key] = isObject(value) && isObject(under) ? overlaid(under, value) : value;
  }
  return merged;
}

function partsOf(path: string): { readonly parents: readonly string[]; readonly last: string } {
  const problem = pathProblem(path);
  if (problem !== undefined) throw new TypeError(problem);
  const parts = path.split(".");
  return { parents: parts.slice(0, -1), last: parts.at(-1) ?? path };
}
