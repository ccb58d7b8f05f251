import { Menu } from "@base-ui/react/menu";
import { useNavigate } from "@tanstack/react-router";
import { ChevronDown } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { buttonClass, Icon } from "../../parts/basic.js";
import { useOfferedCommands } from "../../parts/commands.js";
import { clientOf, type RunPlace } from "../../server/client.js";
import { download } from "../../server/download.js";
import type { RunSnapshot } from "../../server/run-log.js";
import { anew, curlThatFollows, curlThatRepeats, requestFileOf, testCaseOf } from "./request-forms.js";

/** What can be done with a run's request: begin it again, compare, repeat it elsewhere, keep it as a test. */
export function UseAgain({ place, snapshot }: { readonly place: RunPlace; readonly snapshot: RunSnapshot }) {
  const navigate = useNavigate();
  const [note, setNote] = useState<string>();
  const { runId, projectId } = place;
  const isEnded = !snapshot.isLive;
  // A live run has another snapshot in each frame, and its commands stay the same.
  const latest = useRef(snapshot);
  latest.current = snapshot;
  const commands = useMemo(() => {
    const request = async () => anew(await clientOf({ projectId }).runRequest(runId));
    const inProject = (name: string) => (projectId === undefined ? {} : { [name]: projectId });
    const told = (act: () => Promise<unknown>, done: string) => () =>
      void act().then(
        () => setNote(done),
        (error: unknown) => setNote(error instanceof Error ? error.message : String(error)),
      );
    const copy = async (text: Promise<string> | string) => await navigator.clipboard.writeText(await text);
    return [
      {
        label: "Run again, changed…",
        run: () => void navigate({ to: "/start", search: { again: runId, ...inProject("project") } }),
      },
      {
        label: "Compare with another run…",
        run: () => void navigate({ to: "/compare", search: { a: runId, ...inProject("aProject") } }),
      },
      {
        label: "Copy as curl that repeats it",
        run: told(
          async () => await copy(request().then(curlThatRepeats)),
          "Copied: set AMBIT_TOKEN, and what is [redacted]",
        ),
      },
      {
        label: "Copy as curl that follows it",
        run: told(() => copy(curlThatFollows(place)), "Copied: set AMBIT_TOKEN"),
      },
      {
        label: "Download the request",
        run: told(() => download(request().then(requestFileOf), `${runId}.json`), "For `ambit run FILE`"),
      },
      ...(isEnded
        ? [
            {
              label: "Download as a test case",
              run: told(
                () =>
                  download(
                    request().then((sent) => testCaseOf(sent, latest.current)),
                    `${runId}.test.mjs`,
                  ),
                "For `node --test FILE`",
              ),
            },
          ]
        : []),
    ];
  }, [runId, projectId, place, isEnded, navigate]);
  useOfferedCommands(commands);
  useEffect(() => {
    if (note === undefined) return;
    const timer = setTimeout(() => setNote(undefined), 6_000);
    return () => clearTimeout(timer);
  }, [note]);
  return (
    <>
      <p role="status" className="max-w-72 self-center text-right text-xs text-muted empty:hidden">
        {note}
      </p>
      <Menu.Root>
        <Menu.Trigger className={buttonClass()}>
          Use again
          <Icon of={<ChevronDown />} />
        </Menu.Trigger>
        <Menu.Portal>
          <Menu.Positioner side="bottom" align="end" sideOffset={4} className="z-40">
            <Menu.Popup className="rounded-lg border border-line bg-ground p-1 text-sm shadow-lg outline-none">
              {commands.map(({ label, run }) => (
                <Menu.Item
                  key={label}
                  className="cursor-pointer rounded-md px-3 py-1 outline-none data-highlighted:bg-hover"
                  onClick={run}
                >
                  {label}
                </Menu.Item>
              ))}
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </>
  );
}
