import { createServer } from "node:http";
import { gatewayServicePort } from "./addresses.js";

/** What a machine with sandboxes serves on every address of its own: Daytona's runner has its API there. */
export function listenOnGateways(): Promise<void> {
  const server = createServer((_, response) => response.end("the runner's own\n"));
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(gatewayServicePort, "0.0.0.0", resolve);
  });
}
