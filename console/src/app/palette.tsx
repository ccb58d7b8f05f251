import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { type Command, useScreenCommands } from "../parts/commands.js";
import { useSession } from "../parts/session-context.js";
import { agoText, visibleText } from "../parts/words.js";
import { client } from "../server/client.js";
import { signOut } from "../server/session.js";
import { places } from "./places.js";
import { setTheme, themes } from "./theme.js";

interface CommandGroup {
  readonly label: string;
  readonly items: readonly Command[];
}

/** Runs that are offered by their names; every other one by its id. */
const recentRuns = 100;

/** Everything that can be reached or done, by its name. */
export default function Palette({
  isOpen,
  onOpenChange,
}: {
  readonly isOpen: boolean;
  readonly onOpenChange: (isOpen: boolean) => void;
}) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup
          aria-label="Commands"
          className="fixed inset-x-4 top-[12vh] z-50 mx-auto flex max-h-[70vh] max-w-xl flex-col overflow-hidden rounded-lg border border-line bg-ground shadow-lg outline-none"
        >
          <Commands onDone={() => onOpenChange(false)} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function Commands({ onDone }: { readonly onDone: () => void }) {
  const [text, setText] = useState("");
  const groups = useCommandGroups(text.trim());
  return (
    <Autocomplete.Root
      open
      inline
      autoHighlight="always"
      keepHighlight
      items={groups}
      value={text}
      onValueChange={setText}
      itemToStringValue={({ label, also = "" }: Command) => `${label} ${also}`}
    >
      <Autocomplete.Input
        aria-label="Find a screen, a run or an action"
        placeholder="Find a screen, a run or an action"
        className="w-full border-b border-line bg-ground px-4 py-3 outline-none placeholder:text-muted"
      />
      <Autocomplete.List className="min-h-0 flex-1 overflow-y-auto p-1 empty:hidden">
        {({ label, items }: CommandGroup) => (
          <Autocomplete.Group key={label} items={items} className="py-1">
            <Autocomplete.GroupLabel className="px-3 py-1 text-xs text-muted">
              {label}
            </Autocomplete.GroupLabel>
            <Autocomplete.Collection>
              {(command: Command) => (
                <Autocomplete.Item
                  key={`${command.label} ${command.also}`}
                  value={command}
                  className="flex cursor-pointer items-baseline gap-3 rounded-md px-3 py-1 outline-none data-highlighted:bg-hover"
                  onClick={() => {
                    onDone();
                    command.run();
                  }}
                >
                  <span className="truncate">{command.label}</span>
                  <span className="ml-auto truncate text-xs text-muted">{command.also}</span>
                </Autocomplete.Item>
              )}
            </Autocomplete.Collection>
          </Autocomplete.Group>
        )}
      </Autocomplete.List>
    </Autocomplete.Root>
  );
}

function useCommandGroups(text: string): readonly CommandGroup[] {
  const navigate = useNavigate();
  const { expiresAt } = useSession();
  const here = useScreenCommands();
  const { data: runs = [] } = useQuery({
    queryKey: ["runs", "recent"],
    queryFn: async ({ signal }) => (await client.runs({ limit: recentRuns, signal })).runs,
    staleTime: 5_000,
  });
  return useMemo(() => {
    const openRun = (runId: string, project: string | undefined) => () =>
      void navigate({
        to: "/runs/$runId",
        params: { runId },
        search: project === undefined ? {} : { project },
      });
    const now = Date.now();
    const named = runs.filter(({ runId }) => runId === text);
    const byName = [...named, ...runs.filter((run) => !named.includes(run))];
    const groups: readonly CommandGroup[] = [
      { label: "On this screen", items: here },
      {
        label: "Screens",
        items: places.map(({ to, label, also }) => ({ label, also, run: () => void navigate({ to }) })),
      },
      {
        label: "Runs",
        items: byName.map(({ runId, projectId, harness, sessionId = "", createdAt }) => ({
          label: visibleText(runId),
          also: visibleText([harness, sessionId, agoText(createdAt, now)].filter(Boolean).join(" · ")),
          run: openRun(runId, projectId),
        })),
      },
      {
        label: "Console",
        items: [
          ...themes.map((theme) => ({
            label: `Theme: ${theme}`,
            also: "appearance",
            run: () => setTheme(theme),
          })),
          ...(expiresAt === undefined ? [] : [{ label: "Sign out", also: "", run: () => void signOut() }]),
        ],
      },
      {
        label: "A run by its id",
        items:
          text === "" || named.length > 0
            ? []
            : [{ label: visibleText(text), run: openRun(text, undefined) }],
      },
    ];
    return groups.filter(({ items }) => items.length > 0);
  }, [here, runs, text, navigate, expiresAt]);
}
