import { lazy, Suspense } from "react";
import type { Change } from "../server/run-log.js";
import { Spinner } from "./basic.js";

const Rendered = lazy(() => import("./diff-rendered.js"));

export type DiffLook = "split" | "unified";

/** Two columns where there is room for them. */
export const usualLook = (): DiffLook => (matchMedia("(min-width: 48rem)").matches ? "split" : "unified");

/** A patch in git's format, file by file. */
export function Patch({ text, look }: { readonly text: string; readonly look: DiffLook }) {
  return (
    <Suspense fallback={<Spinner label="Reading the changes" />}>
      <Rendered source={{ patch: text }} look={look} />
    </Suspense>
  );
}

/** What a call changes, as its agent says. */
export function Changes({
  changes,
  look = "unified",
}: {
  readonly changes: readonly Change[];
  readonly look?: DiffLook;
}) {
  return (
    <Suspense fallback={<Spinner label="Reading the changes" />}>
      <Rendered source={{ changes }} look={look} />
    </Suspense>
  );
}
