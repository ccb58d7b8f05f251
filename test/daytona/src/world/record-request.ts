import type { IncomingMessage } from "node:http";
import type { WorldRequest } from "../interface.js";
import type { Arrival } from "../runner/messages.js";

/** Reports a request when its body has arrived. Its handler may read the body too. */
export function recorded(
  request: IncomingMessage,
  place: Arrival,
  tell: (entry: WorldRequest) => void,
): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.once("end", () =>
    tell({
      host: place.host,
      port: place.port,
      sandboxId: place.id,
      method: request.method ?? "GET",
      url: request.url ?? "/",
      headers: { ...request.headers },
      body: Buffer.concat(chunks).toString("utf8"),
    }),
  );
}
