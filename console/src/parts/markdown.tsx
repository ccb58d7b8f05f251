import { lazy, memo, Suspense } from "react";

const Rendered = lazy(() => import("./markdown-rendered.js"));

/** Text of an agent, as Markdown once its renderer has arrived. */
export const Markdown = memo(function Markdown({ text }: { readonly text: string }) {
  return (
    <Suspense fallback={<p className="prose whitespace-pre-wrap">{text}</p>}>
      <Rendered text={text} />
    </Suspense>
  );
});
