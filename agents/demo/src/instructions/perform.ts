import type { Instruction, Step } from "../grammar.js";
import type { Lifetime } from "../lifetime.js";
import type { DemoTurn } from "../turn.js";
import { runCommand } from "./command.js";
import { readPath, writePath } from "./files.js";
import type { InstructionOf } from "./instruction-of.js";
import { callMcpTool } from "./mcp.js";
import { beDeaf, crash, detach, fail, hang, makeNoise, sayLate } from "./misbehaviour.js";
import { fetchUrl } from "./network.js";
import { askPermission } from "./permission.js";
import { sayBig, sayImage, sayPlan, stream } from "./speech.js";
import { sayAttachments, sayEnvironment, sayRecalled, sayTools } from "./state.js";
import { sleep } from "./time.js";

/** Executes one step. Rejects only for what must end the turn: a `fail`, or a cancelled turn. */
export async function perform(step: Step, turn: DemoTurn, lifetime: Lifetime): Promise<void> {
  switch (step.verb) {
    case "together":
      return await together(step.steps, turn, lifetime);
    case "complain":
      return await turn.sayLine(step.reply);
    default:
      return await performOne(step, turn, lifetime);
  }
}

async function together(steps: readonly Step[], turn: DemoTurn, lifetime: Lifetime): Promise<void> {
  const outcomes = await Promise.allSettled(steps.map((step) => perform(step, turn, lifetime)));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** A subagent follows a script of its own. What it sends names the call that began it. */
async function delegate(
  { script, steps }: InstructionOf<"delegate">,
  turn: DemoTurn,
  lifetime: Lifetime,
): Promise<void> {
  await turn.callTool(
    { title: "delegate", name: "delegate", kind: "think", rawInput: { script }, ask: "never" },
    async (toolCallId) => {
      const subagentTurn = turn.ofSubagent(toolCallId);
      for (const step of steps) {
        if (subagentTurn.stopReason !== undefined) break;
        await perform(step, subagentTurn, lifetime);
      }
      return { failed: false, text: subagentTurn.said };
    },
  );
}

function performOne(instruction: Instruction, turn: DemoTurn, lifetime: Lifetime): Promise<void> | void {
  switch (instruction.verb) {
    case "say":
      return turn.sayLine(instruction.text);
    case "think":
      return turn.think(instruction.text);
    case "stream":
      return stream(instruction, turn);
    case "big":
      return sayBig(instruction, turn);
    case "image":
      return sayImage(turn);
    case "plan":
      return sayPlan(instruction, turn);
    case "env":
      return sayEnvironment(turn);
    case "tools":
      return sayTools(turn);
    case "attachments":
      return sayAttachments(turn);
    case "recall":
      return sayRecalled(turn);
    case "call":
      return callMcpTool(instruction, turn);
    case "run":
      return runCommand(instruction, turn, lifetime);
    case "read":
      return readPath(instruction, turn);
    case "write":
      return writePath(instruction, turn);
    case "fetch":
      return fetchUrl(instruction, turn);
    case "ask":
      return askPermission(instruction, turn);
    case "delegate":
      return delegate(instruction, turn, lifetime);
    case "sleep":
      return sleep(instruction, turn);
    case "usage": {
      const { inputTokens, outputTokens } = instruction;
      turn.reportedUsage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
      return;
    }
    case "stop":
      turn.stopReason = instruction.reason;
      return;
    case "fail":
      return fail(instruction);
    case "crash":
      return crash(instruction);
    case "hang":
      return hang(turn);
    case "deaf":
      return beDeaf(lifetime);
    case "noise":
      return makeNoise();
    case "late":
      return sayLate(instruction, turn);
    case "detach":
      return detach(instruction, turn);
    default:
      // A new verb without a case fails to compile here.
      return instruction satisfies never;
  }
}
