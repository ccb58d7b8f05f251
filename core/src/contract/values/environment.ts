import { z } from "zod";

/** A variable's name that an operating system can carry. */
export const environmentNameSchema = z
  .string()
  .regex(/^[^=\0]+$/, "must be a variable's name: not empty, without = or NUL");

export const environmentValueSchema = z
  .string()
  .regex(/^[^\0]*$/, "must not contain NUL: an environment can't carry it");

export const environmentSchema = z.record(environmentNameSchema, environmentValueSchema);
