import { z } from "zod";

/** Bytes of a body that may be `null`, with white space. */
const maxNullLength = 8;

const requestSchema = z.object({ id: z.union([z.string(), z.number()]) });

/**
 * Some servers answer a method that they don't know with `null`, which isn't JSON-RPC: here it becomes the error that it
 * stands for, so that the client asks in another way.
 *
 * @param request what we sent, in JSON.
 */
export async function withError(response: Response, request: string | undefined): Promise<Response> {
  const length = Number(response.headers.get("content-length") ?? Number.NaN);
  if (!response.ok || !(length <= maxNullLength) || request === undefined) return response;
  const text = await response.text();
  const asked = requestSchema.safeParse(JSON.parse(request));
  if (text.trim() !== "null" || !asked.success) return new Response(text === "" ? null : text, response);
  const error = { code: -32_601, message: "Method not found" };
  return Response.json({ jsonrpc: "2.0", id: asked.data.id, error });
}
