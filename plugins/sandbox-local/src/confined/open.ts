import { ConfinedSandbox } from "./sandbox.js";
import { openSession, type SessionOptions } from "./session.js";
import { spawnConfined } from "./spawn.js";

/**
 * Opens a confined sandbox. Its first jail runs nothing; it shows that the session's limits can be applied.
 *
 * @throws SandboxFailed when they can't; nothing of the session remains then.
 */
export async function openConfined(options: SessionOptions): Promise<ConfinedSandbox> {
  const session = await openSession(options);
  try {
    const nothing = { argv: ["/bin/sh", "-c", ":"], env: {} } as const;
    const trial = await spawnConfined(session, nothing, { rules: false });
    await trial.exit;
    return new ConfinedSandbox(session, {
      ...trial.evidence,
      ...session.groups?.evidence,
      ...(session.folder.diskBytes === undefined ? {} : { "disk.bytes": String(session.folder.diskBytes) }),
      ...session.weakening?.evidence,
    });
  } catch (error) {
    await session.close();
    throw error;
  }
}
