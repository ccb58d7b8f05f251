import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { Button, Empty, ErrorNote, Icon, Spinner } from "../../parts/basic.js";
import { Changes, type DiffLook, Patch, usualLook } from "../../parts/diff.js";
import { bytesText, visibleText } from "../../parts/words.js";
import { clientOf, type Receipt, type RunPlace } from "../../server/client.js";
import { download } from "../../server/download.js";
import { patch as patchOf } from "../../server/queries.js";
import type { RunSnapshot } from "../../server/run-log.js";
import type { SessionPlace } from "../../server/workspace.js";
import { WorkspaceTree } from "./workspace-tree.js";

const nameOf = (path: string) => path.split("/").at(-1) ?? "file";

export function Files({
  place,
  session,
  snapshot,
  receipt,
}: {
  readonly place: RunPlace;
  /** Undefined: its workspace ends with the run. */
  readonly session: SessionPlace | undefined;
  readonly snapshot: RunSnapshot;
  readonly receipt: Receipt | undefined;
}) {
  const { outputs } = receipt ?? {};
  const reported = snapshot.entries.flatMap((entry) =>
    entry.kind === "call" ? (entry.result?.changes ?? []) : [],
  );
  return (
    <div className="min-w-0 flex-1 space-y-8 px-4 max-lg:flex-none lg:min-h-0 lg:overflow-y-auto py-4 md:px-8">
      {outputs?.patch !== undefined ? (
        <PatchPart place={place} changes={outputs.patch.changes} isComplete={outputs.patch.complete} />
      ) : reported.length > 0 ? (
        <section>
          <h2>What the agent says that it changed</h2>
          <p className="mb-4 text-sm text-muted">
            The run has no patch, which would show what changed: its request has it with{" "}
            <code>{'"outputs": {"patch": true}'}</code>.
          </p>
          <Changes changes={reported} />
        </section>
      ) : (
        outputs === undefined && (
          <Empty title={snapshot.isLive ? "Files come with the result" : "No files left this run"}>
            A request asks for them: <code>{'"outputs": {"patch": true, "include": ["**"]}'}</code>.
          </Empty>
        )
      )}
      {outputs !== undefined && <OutputsPart place={place} outputs={outputs} />}
      {session !== undefined && <WorkspaceTree session={session} isLive={snapshot.isLive} />}
    </div>
  );
}

type Outputs = NonNullable<Receipt["outputs"]>;

const marks = { added: "A", modified: "M", deleted: "D" } as const;
const markTones = { added: "text-good", modified: "text-accent", deleted: "text-bad" } as const;

function PatchPart({
  place,
  changes,
  isComplete,
}: {
  readonly place: RunPlace;
  readonly changes: NonNullable<Outputs["patch"]>["changes"];
  readonly isComplete: boolean;
}) {
  const [look, setLook] = useState(usualLook);
  const { data, error, refetch } = useQuery({ ...patchOf(place), enabled: changes.length > 0 });
  const looks: readonly DiffLook[] = ["split", "unified"];
  return (
    <section>
      <header className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-2">
        <h2>
          {changes.length === 0
            ? "Nothing changed"
            : `${changes.length} ${changes.length === 1 ? "file" : "files"} changed`}
        </h2>
        {!isComplete && (
          <span className="text-sm text-wait">The patch isn't complete: see what was left out.</span>
        )}
        {changes.length > 0 && (
          <div className="ml-auto flex items-center gap-2">
            <div role="radiogroup" aria-label="How changes are shown" className="hidden gap-1 md:flex">
              {looks.map((name) => (
                // biome-ignore lint/a11y/useSemanticElements: buttons in a row, each one press
                <button
                  key={name}
                  type="button"
                  role="radio"
                  aria-checked={name === look}
                  className="rounded-md px-3 py-1 text-sm text-muted capitalize hover:bg-hover aria-checked:bg-hover aria-checked:text-ink"
                  onClick={() => setLook(name)}
                >
                  {name}
                </button>
              ))}
            </div>
            <Button onClick={() => void download(clientOf(place).patch(place.runId), `${place.runId}.patch`)}>
              <Icon of={<Download />} />
              Patch
            </Button>
          </div>
        )}
      </header>
      {changes.length > 1 && (
        <ul className="mb-6 text-sm">
          {changes.map(({ path, change }) => (
            <li key={path} className="flex gap-3 py-0.5 font-mono">
              <span className={markTones[change]} title={change}>
                {marks[change]}
                <span className="sr-only"> {change}</span>
              </span>
              <span className="truncate">{visibleText(path)}</span>
            </li>
          ))}
        </ul>
      )}
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {changes.length > 0 && data === undefined && error === null && <Spinner label="Reading the changes" />}
      {data !== undefined && (
        <>
          <div className="hidden md:block">
            <Patch text={data} look={look} />
          </div>
          <div className="md:hidden">
            <Patch text={data} look="unified" />
          </div>
        </>
      )}
    </section>
  );
}

function OutputsPart({ place, outputs }: { readonly place: RunPlace; readonly outputs: Outputs }) {
  const { files, omitted, git } = outputs;
  const server = clientOf(place);
  return (
    <>
      {files.length > 0 && (
        <section>
          <header className="mb-1 flex items-center gap-4">
            <h2>{files.length === 1 ? "1 file came out" : `${files.length} files came out`}</h2>
            <Button
              className="ml-auto"
              onClick={() => void download(server.archive(place.runId), `${place.runId}.tar`)}
            >
              <Icon of={<Download />} />
              All, as tar
            </Button>
          </header>
          <ul className="text-sm">
            {files.slice(0, maxFiles).map(({ path, size, sha256 }) => (
              <li key={path} className="flex items-center gap-4 border-b border-line py-1">
                <span className="min-w-0 flex-1 truncate font-mono">{visibleText(path)}</span>
                <code className="hidden text-muted lg:block" title={`sha256 ${sha256}`}>
                  {sha256.slice(0, 12)}
                </code>
                <span className="numeric w-16 text-right text-muted">{bytesText(size)}</span>
                <button
                  type="button"
                  aria-label={`Download ${visibleText(path)}`}
                  className="rounded-md p-1 text-muted hover:bg-hover hover:text-ink"
                  onClick={() => void download(server.file(place.runId, path), nameOf(path))}
                >
                  <Icon of={<Download />} />
                </button>
              </li>
            ))}
          </ul>
          {files.length > maxFiles && (
            <p className="mt-2 text-sm text-muted">The archive has the other {files.length - maxFiles}.</p>
          )}
        </section>
      )}
      {git !== undefined && (
        <section className="text-sm">
          <h2>Commit</h2>
          <p className="mt-1">
            <code>{git.commit.slice(0, 12)}</code> on <code>{visibleText(git.branch)}</code>
            {git.pushed ? ", pushed" : ", not pushed"}
            {git.signed ? ", signed" : ""}
          </p>
        </section>
      )}
      {omitted.length > 0 && (
        <section className="text-sm">
          <h2>Left out</h2>
          <ul className="mt-1">
            {omitted.slice(0, maxFiles).map(({ path, reason }) => (
              <li key={path}>
                <code>{visibleText(path)}</code>{" "}
                <span className="text-muted">{reason.replaceAll("_", " ")}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** Rows of a list of files. */
const maxFiles = 500;
