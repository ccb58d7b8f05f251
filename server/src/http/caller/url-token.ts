import type { IncomingMessage } from "node:http";

const tokens = new WeakMap<IncomingMessage, string>();

/**
 * Takes `?token=` out of a request's URL, before anything reads, logs or traces it. An EventSource and an image can send no
 * header, so pages present their token this way.
 */
export function takeTokenOfUrl(incoming: IncomingMessage): void {
  const { url = "/" } = incoming;
  const start = url.indexOf("?");
  if (start === -1) return;
  const query = new URLSearchParams(url.slice(start + 1));
  const [token, ...others] = query.getAll("token");
  if (token === undefined) return;
  query.delete("token");
  incoming.url = query.size === 0 ? url.slice(0, start) : `${url.slice(0, start)}?${query}`;
  // Of several, none counts.
  tokens.set(incoming, others.length === 0 ? token : "");
}

/** The token that was in the request's URL. */
export function tokenOfUrl(incoming: IncomingMessage): string | undefined {
  return tokens.get(incoming);
}

/** Keeps a URL with a token out of other sites' logs and of caches. */
export const urlTokenHeaders: Readonly<Record<string, string>> = {
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};
