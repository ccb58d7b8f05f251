import { HttpRelay } from "@ambit/fakes/http-relay";

/** A proxy for the platform's API that changes its responses about one sandbox. */
export async function rewritingProxy(
  apiUrl: string,
  rewrite: (body: Record<string, unknown>) => Record<string, unknown>,
): Promise<{ url: string; close(): Promise<void> }> {
  const { port, pathname } = new URL(apiUrl);
  const relay = new HttpRelay(
    { port: Number(port) },
    {
      response: ({ method, url }) =>
        (
          method === "POST"
            ? url === `${pathname}/sandbox`
            : method === "GET" && /\/sandbox\/[^/]+$/.test(url)
        )
          ? rewrite
          : undefined,
    },
  );
  return { url: `http://127.0.0.1:${await relay.listen()}${pathname}`, close: () => relay.close() };
}
