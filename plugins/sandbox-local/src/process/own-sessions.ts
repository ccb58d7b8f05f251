/**
 * Numbers of the sessions (as of `setsid`) that this runner's unconfined processes lead, while something of them may
 * live: a program that is started without its environment shows no mark, and is still in its session.
 */
export const ownSessions = new Set<number>();
