import type { Evidence } from "@ambit/core/plugin";
import { ConfinedSandbox } from "./sandbox.js";
import { type ConfinedSession, openSession, type SessionOptions } from "./session.js";
import { spawnConfined } from "./spawn.js";

/**
 * Opens a confined sandbox. Its first jail runs nothing; it shows that the session's limits can be applied. A probe, which
 * starts jails of its own at once, leaves it out (`isTried`).
 *
 * @throws SandboxFailed when they can't; nothing of the session remains then.
 */
export async function openConfined(options: SessionOptions): Promise<ConfinedSandbox> {
  const session = await openSession(options);
  try {
    return new ConfinedSandbox(session, {
      ...(options.isTried === false ? untried(session) : await tried(session)),
      ...session.jailSetup.bubblewrap,
      ...session.groups?.evidence,
      ...(session.folder.diskBytes === undefined ? {} : { "disk.bytes": String(session.folder.diskBytes) }),
    });
  } catch (error) {
    await session.close();
    throw error;
  }
}

async function tried(session: ConfinedSession): Promise<Evidence> {
  const nothing = { argv: ["/bin/sh", "-c", ":"], env: {} } as const;
  const trial = await spawnConfined(session, nothing, { rules: false });
  await trial.exit;
  return trial.evidence;
}

/** What is known without a jail. */
const untried = ({ user }: ConfinedSession): Evidence => (user === undefined ? {} : { uid: user.uid });
