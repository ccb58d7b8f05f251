import type { CreateSandbox } from "@daytona/api-client";
import { z } from "zod";
import { badRequest } from "../../http/api-error.js";

const texts = z.record(z.string(), z.string());

/** The fields of a create request. Fields that the SDK can send but that have no effect here are accepted and dropped. */
const createRequest = z.object({
  name: z.string().min(1).optional(),
  snapshot: z.string().optional(),
  env: texts.default({}),
  labels: texts.default({}),
  public: z.boolean().default(false),
  networkBlockAll: z.boolean().optional(),
  networkAllowList: z.string().optional(),
  domainAllowList: z.string().optional(),
  target: z.string().default("us"),
  cpu: z.int().positive().optional(),
  memory: z.int().positive().optional(),
  disk: z.int().positive().optional(),
  autoStopInterval: z.int().min(0).default(15),
  autoDeleteInterval: z.int().min(-1).default(-1),
  ttlMinutes: z.int().min(0).default(0),
  buildInfo: z.object({ dockerfileContent: z.string().min(1) }).optional(),
  secrets: z.array(texts).default([]),
}) satisfies z.ZodType<unknown, Partial<CreateSandbox>>;
export type CreateRequest = z.output<typeof createRequest>;

/** Throws 400 with all problems of a body. */
export function parseBody<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  const { success, data, error } = schema.safeParse(body ?? {});
  if (success) return data;
  throw badRequest(error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join(", "));
}

export const parseCreateRequest = (body: unknown): CreateRequest => parseBody(createRequest, body);
