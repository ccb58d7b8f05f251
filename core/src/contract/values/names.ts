/** Names and values that requests and results share. */

import { z } from "zod";

/** A variable's name that an operating system can carry. */
export const environmentNameSchema = z
  .string()
  .regex(/^[^=\0]+$/, "must be a variable's name: not empty, without = or NUL");

export const environmentValueSchema = z
  .string()
  .regex(/^[^\0]*$/, "must not contain NUL: an environment can't carry it");

export const environmentSchema = z.record(environmentNameSchema, environmentValueSchema);

/** Names one snapshot of a project. */
export const snapshotIdSchema = z
  .string()
  .regex(/^[0-9a-f]{32}$/, "must be the id of a snapshot: 32 hexadecimal digits");
