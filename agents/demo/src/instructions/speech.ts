import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** One grey pixel. */
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

/** Each chunk is a separate message. Without a text they are numbered from 1, so that a lost one is noticed. */
export async function stream(instruction: InstructionOf<"stream">, turn: DemoTurn): Promise<void> {
  for (let chunk = 1; chunk <= instruction.chunks; chunk += 1) {
    turn.signal.throwIfAborted();
    await turn.say(instruction.text ?? `${chunk} `);
    // A pipe that accepts every write at once never yields to the event loop, and a cancellation would stay unread.
    if (chunk % 1_000 === 0) await new Promise((resume) => setImmediate(resume));
  }
}

export async function sayBig(instruction: InstructionOf<"big">, turn: DemoTurn): Promise<void> {
  await turn.say("x".repeat(instruction.bytes));
}

export async function sayImage(turn: DemoTurn): Promise<void> {
  await turn.update({
    sessionUpdate: "agent_message_chunk",
    content: { type: "image", mimeType: "image/png", data: pixel },
  });
}

/** The first entry is in progress, the others wait. */
export async function sayPlan(instruction: InstructionOf<"plan">, turn: DemoTurn): Promise<void> {
  await turn.update({
    sessionUpdate: "plan",
    entries: instruction.entries.map((content, index) => ({
      content,
      priority: "medium",
      status: index === 0 ? "in_progress" : "pending",
    })),
  });
}
