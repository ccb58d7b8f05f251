import { readFile } from "node:fs/promises";
import { z } from "zod";
import { daemon } from "./daemon.js";

const ordersSchema = z.strictObject({
  /** Ports that accepted a connection. */
  open: z.array(z.int()),
  /** What the daemon printed for the request; null if it refused. */
  printed: z.string().nullable(),
});

/**
 * Sends an order to Daytona's daemon from inside. Not an attempt of the catalogue: it speaks the daemon's own protocol, which no
 * other sandbox has. The catalogue tries the supervisors that all backends have in common.
 */
export async function ordersProgram(node: string, limitMs: number): Promise<readonly [string, ...string[]]> {
  const source = await readFile(new URL("../../inside/orders.cjs", import.meta.url));
  const start = `eval(Buffer.from("${source.toString("base64")}","base64").toString())`;
  return [node, "-e", start, JSON.stringify({ ports: daemon.ports, limitMs })];
}

/** @throws when no line of the output is the program's */
export function readOrders(output: string): z.output<typeof ordersSchema> {
  const line = output.split("\n").findLast((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`a program in the sandbox said "${output.trim().slice(0, 200)}"`);
  return ordersSchema.parse(JSON.parse(line));
}
