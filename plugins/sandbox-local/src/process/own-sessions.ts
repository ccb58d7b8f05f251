/**
 * Ids of the sessions (setsid(2)) that this runner's unconfined processes lead, as long as one of their processes may
 * live: a program started without its environment shows no mark, but is still in its session.
 */
export const ownSessions = new Set<number>();
