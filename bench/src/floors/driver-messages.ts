import { z } from "zod";

export const realAgents = ["codex", "gemini", "pi"] as const;
export type RealAgent = (typeof realAgents)[number];

const subjectSchema = z.object({
  agent: z.enum(realAgents),
  modelUrl: z.string(),
});
/** A real agent, and its scripted model server. */
export type Subject = z.infer<typeof subjectSchema>;

/** Default: the demo agent. */
const shared = { id: z.number(), toolUrl: z.string().optional(), subject: subjectSchema.optional() };

/** `run`: a new agent for one turn, which ends with the response. The others share an open agent. */
export const driverRequestSchema = z.discriminatedUnion("step", [
  z.object({ step: z.literal("run"), script: z.string(), ...shared }),
  z.object({ step: z.literal("open"), agent: z.string(), ...shared }),
  z.object({ step: z.literal("prompt"), agent: z.string(), script: z.string(), ...shared }),
]);
type DriverRequest = z.infer<typeof driverRequestSchema>;
export type DriverStep = DriverRequest extends infer Request
  ? Request extends DriverRequest
    ? Omit<Request, "id">
    : never
  : never;

const promptFiguresSchema = z.object({
  /** Tool calls that the agent reports as completed. */
  completed: z.number(),
  /** Milliseconds from the first message of a tool call to the last. */
  toolsMs: z.number(),
});
export type PromptFigures = z.infer<typeof promptFiguresSchema>;

export const driverAnswerSchema = z.object({
  id: z.number(),
  figures: promptFiguresSchema.optional(),
  error: z.string().optional(),
});
export type DriverAnswer = z.infer<typeof driverAnswerSchema>;
