import { AtCapacity } from "@ambit/core";
import type { RunLimits } from "../limits.js";
import { nameOf } from "./session-name.js";

type SessionLimits = Pick<RunLimits, "sessions" | "sessionsPerProject">;

/**
 * Called before a session is opened. Its project's own sessions may make room for it, those of others never.
 *
 * @param kept the keys of the sessions between their runs.
 * @throws AtCapacity
 */
export function requireRoomFor(key: string, kept: readonly string[], { sessions }: SessionLimits): void {
  if (sessions === 0 || kept.length < sessions || kept.includes(key)) return;
  if (kept.some(isOfProjectOf(key))) return;
  throw new AtCapacity(
    `Runner at capacity (${sessions} sessions are kept): end a session that is no longer needed, or send the run without a sessionId.`,
  );
}

/**
 * The sessions to end when this one is kept: of its project, the least recently used first. Where its project has no
 * other, all stay: there are never more than `sessions` and one for each concurrent run.
 *
 * @param kept the keys of the sessions between their runs with this one, the least recently used first.
 */
export function evictedFor(key: string, kept: readonly string[], limits: SessionLimits): readonly string[] {
  const { sessions, sessionsPerProject = sessions } = limits;
  const others = kept.filter((one) => one !== key && isOfProjectOf(key)(one));
  const surplus = Math.max(kept.length - sessions, others.length + 1 - sessionsPerProject);
  return others.slice(0, Math.max(0, surplus));
}

function isOfProjectOf(key: string): (other: string) => boolean {
  const { project } = nameOf(key);
  return (other) => nameOf(other).project === project;
}
