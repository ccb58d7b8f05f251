import { type RefObject, useEffect, useLayoutEffect, useState } from "react";

/** Pixels from the end within which a reader counts as being there. */
const nearEnd = 80;

/**
 * Keeps a reader at the end of what grows, for as long as he is there.
 * @param total the height of what is scrolled
 * @param follows whether its end is shown at first, else its beginning; then nothing is kept
 */
export function useFollowedEnd(scroller: RefObject<HTMLDivElement | null>, total: number, follows: boolean) {
  const [isAtEnd, setIsAtEnd] = useState(follows);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (follows && isAtEnd && element !== null && total > 0) element.scrollTop = element.scrollHeight;
  }, [scroller, total, follows, isAtEnd]);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = () => setIsAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < nearEnd);
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [scroller]);
  return [isAtEnd, setIsAtEnd] as const;
}
