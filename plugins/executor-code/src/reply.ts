import { type Exit, JsonTooLarge, parseBoundedJson, type ToolOutcome } from "@ambit/core/plugin";
import { z } from "zod";

const replySchema = z.union([
  z.strictObject({ returned: z.unknown() }),
  z.strictObject({ failed: z.string() }),
]);

export interface ToolExit {
  readonly exit: Exit;
  /** What came on the reply's channel. */
  readonly reply: string;
  /** The end of what the tool printed. */
  readonly prints: string;
}

/** What an ended process says to the model. Pure. */
export function outcomeOf({ exit, reply, prints }: ToolExit): ToolOutcome {
  const value = parseJson(reply);
  if (value instanceof JsonTooLarge)
    return failed(`code tool returned what ${value.message}: return less, or a summary`, prints);
  const parsed = replySchema.safeParse(value);
  if (!parsed.success) return failed(`code tool ${howItEnded(exit)}`, prints, "(no stderr)");
  if ("failed" in parsed.data) return failed(parsed.data.failed, prints);
  const { returned } = parsed.data;
  const output = typeof returned === "string" ? returned : JSON.stringify(returned ?? null);
  return { status: "completed", output, data: returned ?? null };
}

/** The tool's own failure, with what it printed: often the only trace of what went wrong. */
export function failed(message: string, prints: string, ifSilent?: string): ToolOutcome {
  const printed = prints.trim() === "" ? ifSilent : prints.trim();
  return {
    status: "failed",
    output: printed === undefined ? message : `${message}\nIt printed:\n${printed}`,
  };
}

function howItEnded({ code, signal }: Exit): string {
  if (signal === "SIGKILL" || code === 137)
    return "was killed (SIGKILL): it may have exceeded its memory limit";
  if (signal !== null) return `was ended by ${signal}`;
  return code === 0
    ? "ended without a result: it exited before main returned"
    : `exited ${code ?? "unknown"}`;
}

function parseJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch (error) {
    // No reply, or half of one: the exit says more than the syntax error would.
    return error instanceof JsonTooLarge ? error : undefined;
  }
}
