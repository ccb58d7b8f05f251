/** What a value costs beside its texts. */
const nodeCost = 16;

/** About how many characters a JSON value takes in memory. Keeps a list of its own: its depth may be anything. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return nodeCost + value.length;
  let size = nodeCost;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") size += nodeCost + next.length;
    else if (Array.isArray(next)) for (const item of next) open.push(item);
    else if (typeof next === "object" && next !== null) {
      for (const [key, inner] of Object.entries(next)) {
        size += key.length;
        open.push(inner);
      }
    }
    size += nodeCost;
  }
  return size;
}
