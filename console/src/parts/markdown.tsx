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

/** A text in its language's colours, once the renderer has arrived. @param language empty: without colours */
export const Code = memo(function Code({
  text,
  language,
}: {
  readonly text: string;
  readonly language: string;
}) {
  // Longer than every fence of the text, which would end it.
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return (
    <Suspense fallback={<pre className="p-3 text-sm">{text}</pre>}>
      <Rendered text={`${fence}${language}\n${text}\n${fence}`} />
    </Suspense>
  );
});
