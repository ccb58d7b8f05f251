import { readdirSync, readFileSync } from "node:fs";
import type { Issue, RunRequest } from "@ambit/core/contract";
import { contractSettingsSchema, parseRunRequest } from "@ambit/runner";
import { agenta } from "../src/index.js";

const settings = contractSettingsSchema.parse({});

/** A request as the runner reads it with this dialect. @throws Error with its issues */
export function requestOf(body: unknown): RunRequest {
  const parsed = parseRunRequest(body, settings, [agenta]);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.request;
}

export function issuesOf(body: unknown): readonly Issue[] {
  const parsed = parseRunRequest(body, settings, [agenta]);
  return parsed.ok ? [] : parsed.issues;
}

const folder = new URL("../../../test/golden/", import.meta.url);

/** Every golden file of one sort, by name without ending. */
export function goldenNames(prefix: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.startsWith(prefix) && file.endsWith(".json"))
    .map((file) => file.slice(0, -".json".length));
}

export function golden(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8"));
}
