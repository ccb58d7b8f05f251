import { fileURLToPath } from "node:url";
import { freePort } from "@ambit/backend-kit";
import { HttpCaller } from "../../http.js";
import { type Program, startProgram } from "../../machine/program.js";
import { healthy } from "./ambit-server.js";

export const bareEntry = fileURLToPath(new URL("../../floors/bare-http.js", import.meta.url));

const validatingEntry = fileURLToPath(new URL("../../floors/bare-hono.js", import.meta.url));

export interface BareServer extends AsyncDisposable {
  readonly program: Program;
  readonly caller: HttpCaller;
}

/** Node's bare HTTP server, in a process of its own like Ambit's. @param address on loopback. */
export function startBareServer(address = "127.0.0.1"): Promise<BareServer> {
  return startServer(bareEntry, address);
}

/** Hono on Node's server, which checks a request by the run's own schema and refuses it. */
export function startValidatingServer(): Promise<BareServer> {
  return startServer(validatingEntry, "127.0.0.1");
}

async function startServer(entry: string, address: string): Promise<BareServer> {
  const port = await freePort();
  const program = startProgram(entry, { arguments: [String(port), address] });
  const caller = new HttpCaller(`http://${address}:${port}`);
  await healthy(program, caller, 2);
  return {
    program,
    caller,
    [Symbol.asyncDispose]: async () => {
      caller.close();
      await program.stop();
    },
  };
}
