import { Collection } from "./collect.js";
import type { Wish } from "./wish.js";

/** Called by what loads this program: see `program/inside-program.ts`. @param input the wish, as JSON. */
export function main(input: string): void {
  const wish: Wish = JSON.parse(input);
  new Collection(wish).run();
}
