import { ConfinedSandbox } from "./sandbox.js";
import { type ConfinedSession, openSession, type SessionOptions } from "./session.js";
import { spawnConfined } from "./spawn.js";

/**
 * Opens a confined sandbox. Its limits are applied; each of its jails is judged before its program's first instruction.
 *
 * @throws SandboxFailed when a limit can't be applied, or with `isTried` when no jail comes up. Nothing of the session
 * remains then.
 */
export async function openConfined(options: SessionOptions): Promise<ConfinedSandbox> {
  const session = await openSession(options);
  try {
    if (options.isTried === true) await tryJail(session);
    return new ConfinedSandbox(session);
  } catch (error) {
    await session.close();
    throw error;
  }
}

async function tryJail(session: ConfinedSession): Promise<void> {
  const nothing = { argv: ["/bin/sh", "-c", ":"], env: {} } as const;
  const trial = await spawnConfined(session, nothing, { rules: false });
  await trial.exit;
}
