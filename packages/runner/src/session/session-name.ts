/** A session as its project names it. */
export interface SessionName {
  readonly project: string | undefined;
  readonly session: string;
}

/** Undefined for the session of a single run. Sessions of two projects with the same id have different keys. */
export function keyOf(sessionId: string | undefined, project: string | undefined): string | undefined {
  if (sessionId === undefined || sessionId.trim() === "") return undefined;
  return JSON.stringify([project ?? null, sessionId]);
}

export function nameOf(key: string): SessionName {
  const [project, session]: [string | null, string] = JSON.parse(key);
  return { project: project ?? undefined, session };
}
