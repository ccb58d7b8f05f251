/** Values of one part. To check one takes 5 to 20 µs. */
const maxPartValues = 256;

/** The member that tells the variants of an object apart: each part of the object has it. */
const discriminator = "type";

/**
 * A request in parts that can be checked one after the other, since a long one takes too long in one turn of the event loop.
 * Each part has the form of the whole: the same members at the same place, and lists with some of their items. A rule that
 * is about single members and items, as all forms here are, holds for the whole exactly if it holds for every part. Pure.
 */
export function* partsOf(value: unknown, maxValues = maxPartValues): Generator<unknown, void, undefined> {
  if (sizeOf(value, maxValues) !== undefined) yield value;
  else if (Array.isArray(value)) yield* partsOfList(value, maxValues);
  else if (typeof value === "object" && value !== null) yield* partsOfObject(value, maxValues);
}

function* partsOfList(list: readonly unknown[], maxValues: number): Generator<unknown[]> {
  let part: unknown[] = [];
  let room = maxValues;
  for (const item of list) {
    const size = sizeOf(item, maxValues);
    if (part.length > 0 && (size === undefined || size > room)) {
      yield part;
      part = [];
      room = maxValues;
    }
    if (size === undefined) for (const inner of partsOf(item, maxValues)) yield [inner];
    else {
      part.push(item);
      room -= size;
    }
  }
  if (part.length > 0) yield part;
}

function* partsOfObject(object: object, maxValues: number): Generator<object> {
  const members = Object.entries(object);
  const shared = members.filter(([key, one]) => key === discriminator && !isContainer(one));
  let part: [string, unknown][] = [...shared];
  let room = maxValues;
  for (const [key, one] of members) {
    const size = sizeOf(one, maxValues);
    if (size === undefined)
      for (const inner of partsOf(one, maxValues)) yield made([...shared, [key, inner]]);
    else {
      if (size > room) {
        yield made(part);
        part = [...shared];
        room = maxValues;
      }
      part.push([key, one]);
      room -= size;
    }
  }
  yield made(part);
}

/** Also a member `__proto__` stays one. */
function made(members: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(members);
}

/** The number of values, itself included; undefined if it is more than that. */
function sizeOf(value: unknown, max: number): number | undefined {
  let size = 1;
  const open: unknown[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (!isContainer(next)) continue;
    const inner: unknown[] = Object.values(next);
    size += inner.length;
    if (size > max) return undefined;
    for (const one of inner) if (isContainer(one)) open.push(one);
  }
  return size;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
