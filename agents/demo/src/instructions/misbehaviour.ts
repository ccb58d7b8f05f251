import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { RequestError } from "@agentclientprotocol/sdk/unstable";
import type { Lifetime } from "../lifetime.js";
import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** Ends the turn with a JSON-RPC internal error (-32603) of this text. */
export function fail(instruction: InstructionOf<"fail">): never {
  throw new RequestError(-32603, instruction.text);
}

/** Ends the process at once, without an ACP message. */
export function crash(instruction: InstructionOf<"crash">): never {
  process.stderr.write(`${instruction.text}\n`);
  process.exit(1);
}

/** Never answers, until the turn is cancelled, or its user sends a message. */
export async function hang(turn: DemoTurn): Promise<void> {
  await turn.orAbort(turn.session.nextSteered());
}

/** Never answers, and can be stopped only by SIGKILL. */
export async function beDeaf(lifetime: Lifetime): Promise<void> {
  lifetime.becomeDeaf();
  await new Promise<never>(() => {});
}

/** Lines on stdout that aren't ACP: text, half an object, an empty line. */
export function makeNoise(): void {
  process.stdout.write('this line is not JSON\n{"half": \n\n\u001b[31mneither is this\u001b[0m\n');
}

/** Says a text that is only sent after the turn's end. */
export function sayLate({ milliseconds, text }: InstructionOf<"late">, turn: DemoTurn): void {
  turn.afterAnswer.push(async () => {
    await delay(milliseconds);
    await turn.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  });
}

/** Leaves a process in a separate session that ignores SIGTERM and SIGHUP; it finally ends by itself. */
export async function detach(instruction: InstructionOf<"detach">, turn: DemoTurn): Promise<void> {
  const program =
    "for (const name of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(name, () => {});" +
    "setTimeout(() => {}, Number(process.argv[1]) * 1000);" +
    "process.stdout.write('ready')";
  const child = spawn(process.execPath, ["-e", program, String(instruction.seconds)], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    cwd: turn.session.cwd,
  });
  // It ignores signals only after it has reported that.
  await turn.orAbort(once(child.stdout, "data"));
  child.stdout.destroy();
  child.unref();
  await turn.sayLine(`detached process ${child.pid}`);
}
