export interface HostUser {
  readonly uid: number;
  readonly gid: number;
}

/** `nobody`: owns nothing that an attack could reach. */
const nobody: HostUser = { uid: 65_534, gid: 65_534 };

/** The user of unguarded attacks if the kit is root; an ordinary user runs them as itself. */
export function unprivilegedUser(): HostUser | undefined {
  return process.getuid?.() === 0 ? nobody : undefined;
}
