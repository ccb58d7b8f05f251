import { useEffect, useSyncExternalStore } from "react";

/** An entry of the command palette. */
export interface Command {
  /** The name of the action, as a button would say it. */
  readonly label: string;
  /** Words by which it is found besides. */
  readonly also?: string;
  readonly run: () => void;
}

let shown: readonly Command[] = [];
const listeners = new Set<() => void>();

function show(commands: readonly Command[]): void {
  shown = commands;
  for (const listener of listeners) listener();
}

/** Offers what can be done on the screen that is shown, as long as it is. Pass the same list again while nothing changes. */
export function useOfferedCommands(commands: readonly Command[]): void {
  useEffect(() => {
    show(commands);
    return () => show([]);
  }, [commands]);
}

export function useScreenCommands(): readonly Command[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => shown,
  );
}
