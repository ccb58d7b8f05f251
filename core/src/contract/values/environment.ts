import { z } from "zod";

/** What an operating system can carry as a variable's name. */
export const environmentNameSchema = z
  .string()
  .regex(/^[^=\0]+$/, "must be a variable's name: not empty, without = or NUL");

export const environmentValueSchema = z
  .string()
  .regex(/^[^\0]*$/, "must not contain NUL: an environment can't carry it");

export const environmentSchema = z.record(environmentNameSchema, environmentValueSchema);
