import { AmbitError } from "@ambit/client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ChevronRight, Download, File, Folder, Link2, RefreshCw } from "lucide-react";
import { useState } from "react";
import { Button, ErrorNote, Icon, Spinner } from "../../parts/basic.js";
import { Plain } from "../../parts/code.js";
import { Code } from "../../parts/markdown.js";
import { bytesText, exactText, momentText, visibleText } from "../../parts/words.js";
import { download } from "../../server/download.js";
import { openFile, type SessionPlace, workspaceFolder } from "../../server/workspace.js";

/** The workspace of a run's session as it is now, folder by folder, beside one of its files. */
export function WorkspaceTree({
  session,
  isLive,
}: {
  readonly session: SessionPlace;
  /** Whether its run goes on. */
  readonly isLive: boolean;
}) {
  const [path, setPath] = useState<string>();
  const cache = useQueryClient();
  const { error } = useQuery(workspaceFolder(session, ""));
  const isAbsent = error instanceof AmbitError && error.code === "not_found";
  const isGone = isAbsent && !isLive;
  return (
    <section aria-label="Workspace">
      <header className="mb-2 flex items-center gap-4">
        <h2>The workspace now</h2>
        {!isGone && (
          <Button
            className="ml-auto"
            onClick={() => void cache.invalidateQueries({ queryKey: ["workspace", session] })}
          >
            <Icon of={<RefreshCw />} />
            Look again
          </Button>
        )}
      </header>
      {isGone ? (
        <p className="text-sm text-muted">
          The session <code>{visibleText(session.sessionId)}</code> isn't open any more, and its workspace
          ended with it.
        </p>
      ) : isAbsent ? (
        <p className="text-sm text-muted">The session isn't open yet: look again in a moment.</p>
      ) : (
        <div className="flex gap-6 max-lg:flex-col">
          <div className="min-w-0 lg:max-h-[36rem] lg:w-72 lg:shrink-0 lg:overflow-y-auto">
            <FolderEntries session={session} folder="" chosen={path} onChoose={setPath} />
          </div>
          <div className="min-w-0 flex-1">
            {path !== undefined && <FileView key={path} session={session} path={path} />}
          </div>
        </div>
      )}
    </section>
  );
}

interface Choice {
  readonly session: SessionPlace;
  readonly chosen: string | undefined;
  readonly onChoose: (path: string) => void;
}

const rowClass =
  "flex w-full items-center gap-2 rounded-md px-1 py-0.5 text-left font-mono text-sm hover:bg-hover aria-[current=true]:bg-hover";

function FolderEntries({ session, folder, chosen, onChoose }: Choice & { readonly folder: string }) {
  const { data, error, refetch } = useQuery(workspaceFolder(session, folder));
  if (data === undefined)
    return error === null ? (
      <Spinner label="Reading the folder" />
    ) : (
      <ErrorNote error={error} retry={() => void refetch()} />
    );
  const { entries, complete } = data;
  const folders = entries.filter(({ kind }) => kind === "folder");
  const others = entries.filter(({ kind }) => kind !== "folder");
  return (
    <ul>
      {[...folders, ...others].map(({ name, kind, size }) => {
        const path = folder === "" ? name : `${folder}/${name}`;
        if (kind === "folder")
          return <FolderRow key={name} session={session} folder={path} chosen={chosen} onChoose={onChoose} />;
        return (
          <li key={name}>
            {kind === "file" ? (
              <button
                type="button"
                className={rowClass}
                aria-current={path === chosen}
                onClick={() => onChoose(path)}
              >
                <span className="w-4 shrink-0" />
                <Icon of={<File />} />
                <span className="truncate">{visibleText(name)}</span>
                <span className="numeric ml-auto pl-2 text-xs text-muted">{bytesText(size)}</span>
              </button>
            ) : (
              <span className={`${rowClass} text-muted`} title={`A ${kind}: it isn't followed`}>
                <span className="w-4 shrink-0" />
                <Icon of={<Link2 />} />
                <span className="truncate">{visibleText(name)}</span>
              </span>
            )}
          </li>
        );
      })}
      {entries.length === 0 && <li className="px-1 py-0.5 text-sm text-muted">empty</li>}
      {!complete && <li className="px-1 py-0.5 text-sm text-muted">and more, which aren't listed</li>}
    </ul>
  );
}

function FolderRow({ session, folder, chosen, onChoose }: Choice & { readonly folder: string }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <li>
      <button type="button" className={rowClass} aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
        <ChevronRight className={`size-4 shrink-0 text-muted ${isOpen ? "rotate-90" : ""}`} aria-hidden />
        <span className="text-muted">
          <Icon of={<Folder />} />
        </span>
        <span className="truncate">{visibleText(nameOf(folder))}</span>
      </button>
      {isOpen && (
        <div className="ml-3 border-l border-line pl-1">
          <FolderEntries session={session} folder={folder} chosen={chosen} onChoose={onChoose} />
        </div>
      )}
    </li>
  );
}

const nameOf = (path: string) => path.split("/").at(-1) ?? path;

/** Bytes of a file that are shown. */
const shownBytes = 262_144;

/** Characters that are highlighted: more would keep the page from moving. */
const highlightedCharacters = 100_000;

function FileView({ session, path }: { readonly session: SessionPlace; readonly path: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["workspace", session, "file", path],
    queryFn: ({ signal }) => beginningOf(session, path, signal),
  });
  return (
    <section aria-label={visibleText(path)}>
      <header className="mb-2 flex items-center gap-3">
        <h3 className="min-w-0 truncate font-mono text-sm font-medium">{visibleText(path)}</h3>
        <Button className="ml-auto" onClick={() => void download(openFile(session, path), nameOf(path))}>
          <Icon of={<Download />} />
          Download
        </Button>
      </header>
      {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Spinner label="Reading the file" />}
      {data !== undefined && (
        <>
          {data.text === undefined ? (
            <p className="text-sm text-muted">Not text: download it to see what it is.</p>
          ) : data.text === "" ? (
            <p className="text-sm text-muted">The file is empty.</p>
          ) : data.text.length > highlightedCharacters ? (
            <Plain text={data.text} label={visibleText(path)} />
          ) : (
            <Highlighted text={data.text} path={path} />
          )}
          <p className="mt-2 text-xs text-muted">
            As of {momentText(data.readAt)}
            {data.isWhole ? "" : `, its first ${bytesText(shownBytes)}: the download has all of it`}
          </p>
        </>
      )}
    </section>
  );
}

async function beginningOf(session: SessionPlace, path: string, signal: AbortSignal) {
  const readAt = new Date().toISOString();
  const { body } = await openFile(session, path, signal);
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const reader = body?.getReader();
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    text += decoder.decode(part.value.subarray(0, shownBytes - bytes), { stream: true });
    bytes += part.value.length;
    if (bytes > shownBytes) break;
  }
  await reader?.cancel();
  return { text: text.includes("\0") ? undefined : text, isWhole: bytes <= shownBytes, readAt };
}

/** By the end of a file's name. */
const languages: readonly (readonly [RegExp, string])[] = [
  [/\.([cm]?[jt]sx?)$/, "typescript"],
  [/\.(json|jsonc|webmanifest)$/, "json"],
  [/\.py$/, "python"],
  [/\.ya?ml$/, "yaml"],
  [/\.(ba|z)?sh$/, "bash"],
  [/\.(diff|patch)$/, "diff"],
];

function Highlighted({ text, path }: { readonly text: string; readonly path: string }) {
  const language = languages.find(([end]) => end.test(path))?.[1] ?? "";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <section tabIndex={0} aria-label="Content" className="max-h-[32rem] overflow-auto">
      <Code text={exactText(text)} language={language} />
    </section>
  );
}
