import bash from "highlight.js/lib/languages/bash";
import diff from "highlight.js/lib/languages/diff";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import yaml from "highlight.js/lib/languages/yaml";
import { memo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeHighlight from "rehype-highlight";
import remarkGfm from "remark-gfm";

const languages = { bash, diff, json, python, typescript, yaml };
const aliases = {
  bash: ["sh", "shell", "zsh"],
  typescript: ["ts", "tsx", "js", "jsx", "javascript"],
  python: ["py"],
  yaml: ["yml"],
};

/** An agent's links lead to web pages or nowhere, and their address can be read where they are pressed. */
function safeUrl(url: string): string | null {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : null;
}

const components: Components = {
  a: ({ href, children }) =>
    href === undefined || href === "" ? (
      <span>{children}</span>
    ) : (
      <>
        <a href={href} target="_blank" rel="noreferrer noopener nofollow" title={href}>
          {children}
        </a>
        {isItsOwnText(children, href) ? null : (
          <span className="text-sm text-muted"> ({URL.parse(href)?.host})</span>
        )}
      </>
    ),
  // Nothing is loaded from elsewhere because an agent says so.
  img: ({ alt = "", src }) => (
    <span className="text-sm text-muted">
      [image: {alt}
      {typeof src === "string" && src !== "" ? ` ${src.slice(0, 200)}` : ""}]
    </span>
  ),
};

const isItsOwnText = (children: unknown, href: string) =>
  typeof children === "string" && (children === href || `https://${children}` === href);

/** No HTML of the text becomes markup: it is shown as it is written. */
export default memo(function MarkdownRendered({ text }: { readonly text: string }) {
  return (
    <div className="prose">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[[rehypeHighlight, { languages, aliases, detect: false }]]}
        urlTransform={safeUrl}
        components={components}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
});
