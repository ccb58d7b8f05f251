import { createServer } from "node:http";
import { gatewayServicePort } from "../addresses.js";

/** A service on every address of the sandboxes' machine, like the API of Daytona's runner. */
export function listenOnGateways(): Promise<void> {
  const server = createServer((_, response) => response.end("the runner's own\n"));
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(gatewayServicePort, "0.0.0.0", resolve);
  });
}
