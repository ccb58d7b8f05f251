const actions = new Set<() => void>();

/**
 * Runs a synchronous action when the process ends normally. There is one listener for all actions.
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
