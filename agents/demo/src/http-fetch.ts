import http from "node:http";
import https from "node:https";

/**
 * `fetch` over `node:http`, for MCP: Node's own fails when the headers of a response take longer than 300 s, and a tool
 * call may take longer. Redirects are not followed.
 *
 * @throws TypeError for a body that isn't a string, as MCP messages are.
 */
export async function patientFetch(url: string | URL, init: RequestInit = {}): Promise<Response> {
  const body = init.body ?? "";
  if (typeof body !== "string") throw new TypeError("patientFetch sends strings only");
  const target = new URL(url);
  const client = target.protocol === "https:" ? https : http;
  return await new Promise((resolve, reject) => {
    const outgoing = client.request(target, {
      method: init.method ?? "GET",
      headers: {
        ...Object.fromEntries(new Headers(init.headers)),
        "content-length": Buffer.byteLength(body),
      },
      signal: init.signal ?? undefined,
    });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => resolve(responseOf(incoming)));
    outgoing.end(body);
  });
}

function responseOf(incoming: http.IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const status = incoming.statusCode ?? 502;
  const bodiless = status === 204 || status === 205 || status === 304;
  if (bodiless) incoming.resume();
  return new Response(bodiless ? null : bytesOf(incoming), { status, headers });
}

function bytesOf(incoming: http.IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    cancel() {
      incoming.destroy();
    },
  });
}
