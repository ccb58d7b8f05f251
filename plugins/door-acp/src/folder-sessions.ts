import { createHash, randomUUID } from "node:crypto";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { AmbitClient, AmbitError, type RunRequest } from "@ambit/client";
import { messageOf } from "@ambit/core/plugin";
import { promptOf, textOf, userBlocks } from "./prompt.js";
import { coalesced, message, notice, noUpdates, textSaid, unfinishedCalls, updatesOf } from "./updates.js";

/** Sessions of one folder that are listed: the latest. */
const maxSessions = 100;
/** Turns of a session that are shown again: the latest. */
const maxTurns = 500;
const maxTitle = 80;

type StoredRun = Awaited<ReturnType<AmbitClient["runs"]>>["runs"][number];

/** Said where a run paused for a question. */
export const unanswered =
  "The question had no answer in time, and its call was not made. Send a message to go on.";

/** One turn of a session, as the store has its run. */
export interface StoredTurn {
  /** Undefined where the store has no copy of it. */
  readonly request: RunRequest | undefined;
  /** What the user said. */
  readonly prompt: readonly ContentBlock[];
  /** What the editor shows of the run, in any editor. */
  readonly updates: readonly SessionUpdate[];
  /** What an agent is told of the turn that doesn't remember it. */
  readonly said: { readonly user: string; readonly agent: string };
}

export interface ListedSession {
  readonly sessionId: string;
  readonly title: string | undefined;
  /** ISO 8601. */
  readonly updatedAt: string;
}

const idPattern = /^(acp_[0-9a-f]{16})_[0-9a-f-]{36}$/;

/**
 * The editor's sessions of one folder, read from the runs of the store. The folder is their project, so that no other one sees them.
 * An editor's session has one session of Ambit's after the other, one for each process that opened it: a process that was killed may
 * hold its last one for as long as its lease.
 */
export class FolderSessions {
  readonly client: AmbitClient;

  /** @param project of the folder */
  private constructor(
    readonly project: string,
    readonly folder: string,
    fetch: typeof globalThis.fetch,
  ) {
    this.client = new AmbitClient({ fetch, projectId: project });
  }

  /** @param folder without links */
  static of(folder: string, fetch: typeof globalThis.fetch): FolderSessions {
    const digest = createHash("sha256").update(folder).digest("hex").slice(0, 16);
    return new FolderSessions(`acp_${digest}`, folder, fetch);
  }

  /** Those of the folder that a session's id names. Undefined for what is no such id. */
  static ofSession(sessionId: string, fetch: typeof globalThis.fetch): FolderSessions | undefined {
    const project = idPattern.exec(sessionId)?.[1];
    return project === undefined ? undefined : new FolderSessions(project, "", fetch);
  }

  newId(): string {
    return `${this.project}_${randomUUID()}`;
  }

  /** A session of Ambit's for the runs of an editor's session, from now on. */
  newSession(editorId: string): string {
    return `${editorId}.${randomUUID().slice(0, 8)}`;
  }

  /** The latest first, each named by its first run, or the earliest that is newer than all runs of the sessions left out. */
  async list(): Promise<readonly ListedSession[]> {
    const latest = new Map<string, { readonly newest: StoredRun; readonly first: StoredRun }>();
    for await (const run of this.client.eachRun()) {
      const id = editorSession(run);
      if (!idPattern.test(id)) continue;
      const { newest } = latest.get(id) ?? { newest: run };
      if (!latest.has(id) && latest.size === maxSessions) break;
      latest.set(id, { newest, first: run });
    }
    return await Promise.all(
      [...latest].map(async ([sessionId, { newest, first }]) => {
        const request = await this.#requestOf(first);
        const { endedAt, startedAt, createdAt } = newest;
        const updatedAt = endedAt ?? startedAt ?? createdAt;
        return { sessionId, title: titleOf(promptOf(request, this.folder)), updatedAt };
      }),
    );
  }

  /** The first one first. None: there is no such session in the folder. */
  async turns(sessionId: string): Promise<readonly StoredTurn[]> {
    const runs: StoredRun[] = [];
    for await (const run of this.client.eachRun()) {
      if (editorSession(run) === sessionId) runs.push(run);
      if (runs.length === maxTurns) break;
    }
    const turns: StoredTurn[] = [];
    for (const run of runs.reverse()) turns.push(await this.#turnOf(run));
    return turns;
  }

  /** Deletes its runs. One that goes on is cancelled first. */
  async delete(sessionId: string): Promise<void> {
    for (const run of await Array.fromAsync(this.client.eachRun())) {
      if (editorSession(run) !== sessionId) continue;
      if (run.state !== "ended") {
        await this.client.cancelRun(run.runId).catch(unlessMissing);
        await this.client.attach(run.runId).result.catch(() => undefined);
      }
      await this.client.deleteRun(run.runId).catch(unlessMissing);
    }
  }

  async #requestOf({ runId }: StoredRun): Promise<RunRequest | undefined> {
    return await this.client.runRequest(runId).catch(unlessMissing);
  }

  async #turnOf(run: StoredRun): Promise<StoredTurn> {
    const [request, updates] = [await this.#requestOf(run), coalesced(await this.#updatesOf(run))];
    const user = textOf(userBlocks(request));
    return {
      request,
      prompt: promptOf(request, this.folder),
      updates,
      said: { user, agent: textSaid(updates) },
    };
  }

  /** Of a run that hasn't ended, what is there: its process may have been killed. */
  async #updatesOf({ runId, state, events }: StoredRun): Promise<readonly SessionUpdate[]> {
    const updates: SessionUpdate[] = [];
    let calls = noUpdates;
    if (state !== "ended" && events === 0) return updates;
    const run = this.client.attach(runId);
    let count = 0;
    try {
      for await (const event of run) {
        const [next, made] = updatesOf(calls, event, { folder: this.folder, ...plain });
        calls = next;
        updates.push(...made);
        count += 1;
        if (state !== "ended" && count === events) break;
      }
      if (state === "ended" && (await run.result).stopReason === "paused")
        updates.push(notice("warning", unanswered, plain));
    } catch (error) {
      updates.push(message(`\n\n${messageOf(error)}\n\n`));
    }
    return [...updates, ...unfinishedCalls(calls)];
  }
}

/** Any editor shows these updates. */
const plain = { showsTerminals: false, showsNotices: false } as const;

/** The editor's session of a run. */
const editorSession = ({ sessionId = "" }: StoredRun) => sessionId.slice(0, sessionId.lastIndexOf("."));

function unlessMissing(error: unknown): undefined {
  if (error instanceof AmbitError && error.status === 404) return undefined;
  throw error;
}

function titleOf(prompt: readonly ContentBlock[]): string | undefined {
  const text = prompt
    .find((block) => block.type === "text")
    ?.text.replaceAll(/\s+/g, " ")
    .trim();
  return text === undefined || text === "" ? undefined : text.slice(0, maxTitle);
}
