import { IncomingMessage } from "node:http";
import { onTestFinished, vi } from "vitest";

/** Pieces that HTTP servers of this process get of bodies, until the test ends. */
export function watchPieces(): { total(): number; maxInTurn(): number } {
  let [total, inTurn, most] = [0, 0, 0];
  const { push } = IncomingMessage.prototype;
  const pushing = vi.spyOn(IncomingMessage.prototype, "push").mockImplementation(function (
    this: IncomingMessage,
    ...given
  ) {
    total += 1;
    if (inTurn === 0)
      setImmediate(() => {
        most = Math.max(inTurn, most);
        inTurn = 0;
      });
    inTurn += 1;
    return push.apply(this, given);
  });
  onTestFinished(() => void pushing.mockRestore());
  return { total: () => total, maxInTurn: () => most };
}
