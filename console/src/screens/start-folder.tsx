import { FolderOpen, X } from "lucide-react";
import { type DragEvent, type ReactNode, useRef, useState } from "react";
import { Button, Icon } from "../parts/basic.js";
import { bytesText, numberText, visibleText } from "../parts/words.js";
import { type ChosenFolder, filesChosenIn, filesDroppedIn, readFolder } from "../server/folder.js";

/** Every browser has it, and no type of React. */
const foldersOnly = { webkitdirectory: "" };

type Files = Parameters<typeof readFolder>[0];

/** A folder of the user's disk for the workspace: chosen, or dropped anywhere on what it is around. */
export function FolderDrop({
  folder,
  onFolder,
  className,
  children,
}: {
  readonly folder: ChosenFolder | undefined;
  readonly onFolder: (folder: ChosenFolder | undefined) => void;
  readonly className: string;
  readonly children: ReactNode;
}) {
  const chooser = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  const [isReading, setIsReading] = useState(false);
  const [problem, setProblem] = useState<string>();
  const take = async (files: Files | Promise<Files>) => {
    setIsReading(true);
    setProblem(undefined);
    try {
      onFolder(await readFolder(await files));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setIsReading(false);
    }
  };
  const drop = (event: DragEvent) => {
    setIsOver(false);
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    void take(filesDroppedIn(event.dataTransfer));
  };
  const over = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setIsOver(true);
  };
  return (
    <section
      aria-label="Request"
      className={`${className} ${isOver ? "bg-hover" : ""}`}
      onDragOver={over}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
    >
      {children}
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-sm">
        <input
          ref={chooser}
          type="file"
          aria-label="Folder for the workspace"
          className="hidden"
          {...foldersOnly}
          onChange={({ target }) => {
            if (target.files !== null && target.files.length > 0) void take(filesChosenIn(target.files));
            target.value = "";
          }}
        />
        <Button disabled={isReading} onClick={() => chooser.current?.click()}>
          <Icon of={<FolderOpen />} />
          {isReading ? "Reading…" : "Add a folder"}
        </Button>
        <p aria-live="polite" className="flex min-w-0 items-center gap-1 text-muted">
          {folder === undefined ? (
            "or drop one here: the workspace begins with its files"
          ) : (
            <>
              <span className="truncate">
                <span className="font-medium text-ink">{visibleText(folder.name)}</span>
                {`: ${numberText(folder.files.length)} ${folder.files.length === 1 ? "file" : "files"}, ${bytesText(folder.bytes)}`}
                {folder.leftOut.length > 0 && `, without ${folder.leftOut.map(visibleText).join(", ")}`}
              </span>
              <button
                type="button"
                aria-label="Leave the folder out"
                className="inline-flex size-6 items-center justify-center rounded hover:bg-hover hover:text-ink"
                onClick={() => onFolder(undefined)}
              >
                <Icon of={<X />} />
              </button>
            </>
          )}
        </p>
        {problem !== undefined && (
          <p role="alert" className="w-full text-bad">
            {problem}
          </p>
        )}
      </div>
    </section>
  );
}
