import { NotFound, SnapshotFailed } from "@ambit/core";
import type { SnapshotInfo } from "@ambit/core/contract";
import {
  noWorkspaces,
  type SessionState,
  type SnapshotService,
  type WorkspaceService,
} from "../../src/operator.js";

const facts = { sha256: "0".repeat(64), bytes: 1, entries: 1, skipped: 0 };

/** Copies nothing, and notes what it is asked to copy. */
export class FakeWorkspaces implements WorkspaceService {
  readonly issues = () => [];
  readonly ownSandboxes = noWorkspaces.ownSandboxes;
  readonly begin = noWorkspaces.begin;
  readonly fill = noWorkspaces.fill;
  readonly removeGitLocks = noWorkspaces.removeGitLocks;
  readonly outputsOf = noWorkspaces.outputsOf;
  /** The parts that were copied. */
  readonly copied: string[] = [];
  readonly kept = new Map<string, SessionState>();
  /** Why nothing can be copied. */
  failure: string | undefined;

  readonly snapshots: SnapshotService = {
    isKept: true,
    take: async ({ session, backend }, state): Promise<SnapshotInfo> => {
      if (this.failure !== undefined) throw new SnapshotFailed(this.failure);
      const id = `snapshot-${this.kept.size}`;
      this.kept.set(id, state);
      return { ...facts, id, sessionId: session, sandbox: backend, createdAt: new Date().toISOString() };
    },
    restore: async (id, _project, _into, _signal, part = "all") => {
      const state = this.kept.get(id);
      if (state === undefined) throw new NotFound(`There is no snapshot ${id}.`);
      this.copied.push(part);
      return { facts, state };
    },
    copy: async (_from, _into, _signal, part = "all") => {
      if (this.failure !== undefined) throw new SnapshotFailed(this.failure);
      this.copied.push(part);
      return facts;
    },
    delete: async (id) => void this.kept.delete(id),
  };

  get suspended(): SnapshotService {
    return this.snapshots;
  }
}
