import { claude } from "./claude.js";
import { codex } from "./codex.js";
import { demo } from "./demo.js";
import { gemini } from "./gemini.js";
import { opencode } from "./opencode.js";
import { pi } from "./pi.js";
import type { Profile } from "./profile.js";
import { qwen } from "./qwen.js";

/** Every agent that this plugin supports. To add one, write its profile and list it here. */
export const profiles = { demo, claude, codex, gemini, opencode, pi, qwen } as const satisfies Readonly<
  Record<string, Profile>
>;

export type ProfileId = keyof typeof profiles;

export const profileIds = [
  "demo",
  "claude",
  "codex",
  "gemini",
  "opencode",
  "pi",
  "qwen",
] as const satisfies readonly ProfileId[];
