import { join } from "node:path";
import { SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import { z } from "zod";
import type { LocalConfig } from "../config.js";
import { deadRunner } from "../folders/runner-folder.js";
import { endLeftover } from "../reaper/reap.js";

/** What another runner of this host needs to go on with a session's files. */
const remainsSchema = z.strictObject({
  /** The key of the runner that had them. */
  runner: z.string().regex(/^[0-9a-f]{24}$/),
  session: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  /** Their owner. Absent: the runner's own user. */
  uid: z.int().optional(),
});
type Remains = z.output<typeof remainsSchema>;

export function writeRemains(remains: Remains): string {
  return JSON.stringify(remains);
}

/** @throws SandboxFailed for data of another version */
export function readRemains(text: string): Remains {
  const read = remainsSchema.safeParse(JSON.parse(text));
  if (read.success) return read.data;
  throw new SandboxFailed("Another version of sandbox-local had them", {
    cause: read.error,
    concerns: "session",
  });
}

/**
 * The folder of a session that ended with its runner, in which nothing runs any more, and the user id that a session needs to
 * go on with it. Undefined for a session that begins anew.
 *
 * @throws SandboxFailed where it isn't this host's, its runner lives, or its owner can't be this runner's
 */
export async function findRemains(options: {
  readonly spec: SandboxSpec;
  readonly config: LocalConfig;
  readonly dataFolder: string;
}): Promise<{ readonly folder: string; readonly userIds: LocalConfig["userIds"] } | undefined> {
  const { spec, config, dataFolder } = options;
  if (spec.remains === undefined) return undefined;
  const { runner, session, uid } = readRemains(spec.remains);
  const { userIds } = config;
  const isOwner = (process.getuid?.() === 0) === (uid !== undefined);
  const isInRange = uid === undefined || (uid >= userIds.first && uid < userIds.first + userIds.count);
  if (session !== spec.id || !isOwner || !isInRange)
    throw new SandboxFailed("They belong to another user of this host", { concerns: "session" });
  const folder = join(await deadRunner(dataFolder, runner), session);
  await endLeftover(runner, folder, session);
  return { folder, userIds: uid === undefined ? userIds : { ...userIds, first: uid, count: 1 } };
}
