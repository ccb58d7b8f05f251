import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../../../../test/golden/", import.meta.url);

/** Every golden file of one sort, by name without ending. */
export function goldenNames(prefix: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.startsWith(prefix) && file.endsWith(".json"))
    .map((file) => file.slice(0, -".json".length));
}

export function goldenText(name: string): string {
  return readFileSync(new URL(`${name}.json`, folder), "utf8");
}

export function golden(name: string): unknown {
  return JSON.parse(goldenText(name));
}
