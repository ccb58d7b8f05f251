import "react-diff-view/style/index.css";
import { createTwoFilesPatch } from "diff";
import { useMemo } from "react";
import { Diff, type FileData, Hunk, parseDiff } from "react-diff-view";
import type { Change } from "../server/run-log.js";
import { Plain } from "./code.js";
import type { DiffLook } from "./diff.js";
import { visibleText } from "./words.js";

/** Changed lines of one file that are shown at once. */
const maxLines = 3_000;

type Source = { readonly patch: string } | { readonly changes: readonly Change[] };

function filesOf(source: Source): readonly FileData[] {
  if ("patch" in source) return parseDiff(source.patch, { nearbySequences: "zip" });
  return source.changes.flatMap(({ path, oldText, newText }) => {
    const name = path.replace(/^\/workspace\//, "");
    const patch = createTwoFilesPatch(`a/${name}`, `b/${name}`, oldText ?? "", newText ?? "", "", "");
    const begin = `diff --git a/${name} b/${name}\n`;
    return parseDiff(begin + patch.slice(patch.indexOf("---")), { nearbySequences: "zip" });
  });
}

export default function DiffRendered({ source, look }: { readonly source: Source; readonly look: DiffLook }) {
  const files = useMemo(() => {
    try {
      return filesOf(source);
    } catch {
      return undefined;
    }
  }, [source]);
  if (files === undefined)
    return <Plain text={"patch" in source ? source.patch : JSON.stringify(source)} label="Changes" />;
  return (
    <div className="space-y-6">
      {files.map((file) => (
        <FileDiff key={`${file.oldPath} ${file.newPath}`} file={file} look={look} />
      ))}
    </div>
  );
}

const verbs = {
  add: "added",
  delete: "deleted",
  modify: "",
  rename: "renamed",
  copy: "copied",
} as const;

export const idOfFile = (path: string) => `file-${path}`;

export const pathOfFile = ({ type, oldPath, newPath }: FileData) => (type === "delete" ? oldPath : newPath);

function FileDiff({ file, look }: { readonly file: FileData; readonly look: DiffLook }) {
  const lines = file.hunks.flatMap(({ changes }) => changes);
  const added = lines.filter(({ type }) => type === "insert").length;
  const removed = lines.filter(({ type }) => type === "delete").length;
  const path = pathOfFile(file);
  return (
    <section id={idOfFile(path)} aria-label={path}>
      <h3 className="sticky top-0 z-10 flex items-baseline gap-3 bg-ground py-1 font-mono text-sm">
        <span className="truncate font-medium">{visibleText(path)}</span>
        <span className="text-muted">{verbs[file.type]}</span>
        <span className="numeric ml-auto whitespace-nowrap">
          <span className="text-good">+{added}</span> <span className="text-bad">−{removed}</span>
        </span>
      </h3>
      {file.isBinary ? (
        <p className="py-2 text-sm text-muted">Not text: the patch has its bytes.</p>
      ) : lines.length > maxLines ? (
        <p className="py-2 text-sm text-muted">
          {lines.length.toLocaleString()} lines: download the patch to read them.
        </p>
      ) : (
        <div className="overflow-x-auto border-t border-line">
          <Diff viewType={look} diffType={file.type} hunks={file.hunks}>
            {(hunks) => hunks.map((hunk) => <Hunk key={hunk.content} hunk={hunk} />)}
          </Diff>
        </div>
      )}
    </section>
  );
}
