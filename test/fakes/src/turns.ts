import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * How many steps took place in each turn of the event loop that had one, while this acts.
 * @param act calls `step` at each.
 */
export async function stepsByTurn(act: (step: () => void) => Promise<unknown>): Promise<readonly number[]> {
  let turn = 0;
  const isOver = new AbortController();
  const counting = (async () => {
    for (; !isOver.signal.aborted; turn += 1) await nextTurn();
  })();
  const steps = new Map<number, number>();
  await act(() => steps.set(turn, (steps.get(turn) ?? 0) + 1));
  isOver.abort();
  await counting;
  return [...steps.values()];
}
