import { SnapshotFailed } from "@ambit/core";
import type { SnapshotInfo } from "@ambit/core/contract";
import type { WorkspaceService } from "../operator.js";
import type { SessionName } from "./session-name.js";
import type { Sessions } from "./sessions.js";

/**
 * Keeps a copy of an idle session's workspace, home and conversation. Undefined if there is none of that name here.
 * @throws SessionInUse, SnapshotFailed, StoreFailed; the signal's reason
 */
export async function takeSnapshot(
  sessions: Pick<Sessions, "using">,
  workspaces: WorkspaceService | undefined,
  { session, project }: SessionName,
  signal: AbortSignal,
): Promise<SnapshotInfo | undefined> {
  const snapshots = workspaces?.snapshots;
  if (snapshots?.isKept !== true)
    throw new SnapshotFailed(
      "Snapshots can't be kept here: add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins.",
    );
  return sessions.using(session, project, ({ asSource, state }) =>
    snapshots.take({ ...asSource, session, project }, state, signal),
  );
}
