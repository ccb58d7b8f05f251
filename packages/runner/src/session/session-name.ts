/** A session as its project names it. */
export interface SessionName {
  readonly project: string | undefined;
  readonly session: string;
}

/** Undefined for a session of one run alone. Two projects' sessions of equal id have different keys. */
export function keyOf(sessionId: string | undefined, project: string | undefined): string | undefined {
  if (sessionId === undefined || sessionId.trim() === "") return undefined;
  return JSON.stringify([project ?? null, sessionId]);
}

export function nameOf(key: string): SessionName {
  const [project, session]: [string | null, string] = JSON.parse(key);
  return { project: project ?? undefined, session };
}
