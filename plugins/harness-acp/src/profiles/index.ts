import { codex } from "./codex.js";
import { demo } from "./demo.js";
import { gemini } from "./gemini.js";
import type { Profile } from "./profile.js";

/** Every agent that this plugin knows. A new one is a file of its own and a word here. */
export const profiles = { demo, gemini, codex } as const satisfies Readonly<Record<string, Profile>>;

export type ProfileId = keyof typeof profiles;

export const profileIds = ["demo", "gemini", "codex"] as const satisfies readonly ProfileId[];
