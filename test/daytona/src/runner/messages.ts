import { z } from "zod";
import { organization, snapshot } from "../options.js";

/** What is applied to a sandbox's network. */
export const network = z.strictObject({
  blockAll: z.boolean(),
  /** IPv4 ranges; null: not limited by address. */
  allowList: z.array(z.string()).nullable(),
  /** Names, including `*.suffix`; null: not limited by name. */
  domains: z.array(z.string()).nullable(),
});
export type Network = z.infer<typeof network>;

/** A placeholder that the proxy replaces in requests to these hosts. No hosts means all. */
export const substitution = z.strictObject({
  placeholder: z.string(),
  value: z.string(),
  hosts: z.array(z.string()),
});
export type Substitution = z.infer<typeof substitution>;

export const sandboxSpec = z.strictObject({
  id: z.string(),
  /** Which of the loopback's networks is its own: 10.98.<index>.0/24. */
  index: z.int().min(1).max(254),
  image: snapshot,
  env: z.record(z.string(), z.string()),
  cpu: z.number(),
  memoryBytes: z.int(),
  diskBytes: z.int(),
  sessionGraceMs: z.int(),
  /** Replaces the loopback's own. */
  daemon: z.string().optional(),
  /** The snapshot of a sandbox whose files it begins with, by its id. */
  from: z.uuid().optional(),
});
export type SandboxSpec = z.infer<typeof sandboxSpec>;

const id = z.string();

/** The control plane's requests to its runner. */
export const call = z.discriminatedUnion("method", [
  z.strictObject({ method: z.literal("create"), spec: sandboxSpec }),
  z.strictObject({
    method: z.literal("start"),
    id,
    network,
    substitutions: z.array(substitution),
    env: z.record(z.string(), z.string()),
  }),
  z.strictObject({ method: z.literal("stop"), id }),
  z.strictObject({ method: z.literal("destroy"), id }),
  z.strictObject({ method: z.literal("snapshot"), id, snapshot: z.uuid() }),
  z.strictObject({ method: z.literal("forget"), snapshot: z.uuid() }),
  z.strictObject({
    method: z.literal("network"),
    id,
    network,
    substitutions: z.array(substitution),
  }),
  z.strictObject({
    method: z.literal("host"),
    name: z.string(),
    address: z.string(),
    ports: z.array(z.int()),
  }),
  z.strictObject({ method: z.literal("close") }),
]);
export type Call = z.infer<typeof call>;
export const numberedCall = z.strictObject({ number: z.int(), call });

/** The first message to a runner. */
export const setup = z.strictObject({
  /** Holds its sockets and the sandboxes' mount points. */
  folder: z.string(),
  /** The name of its cgroups, apart from every other runner's. */
  name: z.string(),
  essentials: z.array(z.string()),
  /** Whether the resolver also responds to sandboxes that may reach nothing else. */
  openResolver: z.boolean(),
  ownProcessors: z.boolean(),
  leaks: organization.shape.leaks.unwrap(),
});
export type Setup = z.infer<typeof setup>;

/** A runner's messages. `pid` is the response to a start. */
export const report = z.discriminatedUnion("report", [
  z.strictObject({ report: z.literal("ready"), limits: z.array(z.string()) }),
  z.strictObject({ report: z.literal("done"), number: z.int(), pid: z.int().optional() }),
  z.strictObject({ report: z.literal("failed"), number: z.int(), message: z.string() }),
  z.strictObject({ report: z.literal("exited"), id }),
  z.strictObject({ report: z.literal("query"), id, name: z.string() }),
  z.strictObject({ report: z.literal("datagram"), id, host: z.string(), port: z.int() }),
]);
export type Report = z.infer<typeof report>;

/** The first line on a connection from a runner to the world's socket. */
export const arrival = z.strictObject({ host: z.string(), port: z.int(), id: z.string().optional() });
export type Arrival = z.infer<typeof arrival>;
