const actions = new Set<() => void>();

/**
 * Runs a synchronous action when the process ends of its own accord. There is one listener, however many actions.
 *
 * @returns takes the action back.
 */
export function atExit(action: () => void): () => void {
  if (actions.size === 0) process.once("exit", runAll);
  actions.add(action);
  return () => {
    actions.delete(action);
    if (actions.size === 0) process.off("exit", runAll);
  };
}

function runAll(): void {
  for (const action of actions) action();
}
