import type { JsonObject } from "@ambit/core/plugin";
import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { outcomeSchema } from "./outcome.js";

const runId = z.string().min(1).max(128).meta({ description: "The run's id, as a result names it." });

const model = z
  .string()
  .min(1)
  .optional()
  .meta({ description: "The agent's model. Default: the agent's own." });

export const runArguments = z.strictObject({
  prompt: z
    .string()
    .min(1)
    .meta({ description: "What the agent shall do, with everything that it needs to know." }),
  agent: z
    .string()
    .min(1)
    .optional()
    .meta({ description: "The agent's id, such as `gemini`. Default: the server's choice." }),
  model,
  sessionId: z.string().min(1).max(256).optional().meta({
    description: "Goes on in this session, with its conversation and files. Default: a new session.",
  }),
});

const answerSchema = z
  .strictObject({
    id: z.string().min(1).meta({ description: "The question's id." }),
    approved: z.boolean().optional().meta({ description: "Whether the call may be made." }),
    output: z.unknown().optional().meta({ description: "The values of a form, or a client tool's output." }),
    isError: z.boolean().optional().meta({ description: "Whether `output` is a failure. Default: false." }),
  })
  .refine(({ approved, output }) => (approved === undefined) !== (output === undefined), {
    error: "needs either `approved` or `output`",
  });
export type GivenAnswer = z.output<typeof answerSchema>;

export const continueArguments = z.strictObject({
  runId,
  prompt: z.string().min(1).optional().meta({
    description: "The next message to the run's agent, in the same conversation and with the same files.",
  }),
  model,
  answers: z
    .array(answerSchema)
    .min(1)
    .max(100)
    .optional()
    .meta({ description: "Answers of the user to the questions that the run has asked." }),
});

export const cancelArguments = z.strictObject({ runId });
export const cancelOutcomeSchema = z.object({
  runId: z.string(),
  cancelled: z.boolean().meta({ description: "False: the run had ended before." }),
});

/** What `tools/list` answers. */
export const tools: readonly Tool[] = [
  {
    name: "run_agent",
    title: "Run an agent",
    description:
      "Runs a coding agent for one turn, in a sandbox of its own, and returns what it said and which files it changed. A result with the status `input_required` has questions for the user: answer them with continue_run.",
    inputSchema: schemaOf(runArguments),
    outputSchema: schemaOf(outcomeSchema),
    annotations: { readOnlyHint: false, openWorldHint: true },
    execution: { taskSupport: "optional" },
  },
  {
    name: "continue_run",
    title: "Continue a run",
    description:
      "Goes on with a run: with its user's answers, with a further prompt for its agent, or, with neither, by waiting for its result.",
    inputSchema: schemaOf(continueArguments),
    outputSchema: schemaOf(outcomeSchema),
    annotations: { readOnlyHint: false, openWorldHint: true },
    execution: { taskSupport: "optional" },
  },
  {
    name: "cancel_run",
    title: "Cancel a run",
    description: "Ends a run that is in progress. Its session keeps its files.",
    inputSchema: schemaOf(cancelArguments),
    outputSchema: schemaOf(cancelOutcomeSchema),
    annotations: { readOnlyHint: false, idempotentHint: true, openWorldHint: false },
  },
];

function schemaOf(schema: z.ZodObject): Tool["inputSchema"] {
  const json: JsonObject = z.toJSONSchema(schema);
  return { ...json, type: "object" };
}
