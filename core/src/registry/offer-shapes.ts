import { z } from "zod";
import { capabilitySchema, siteSchema } from "../contract/index.js";
import { shapeProblems } from "../plan/index.js";
import type { Offers } from "../plugin/index.js";

/** Characters of a name, which errors, events and metrics repeat. */
const maxNameCharacters = 200;

const name = z.string().min(1).max(maxNameCharacters);
const method = z.custom((value) => typeof value === "function", {
  error: ({ input }) => (input === undefined ? "is required: a method" : "must be a method"),
});
const optionalMethod = method.optional();
const methods = <Name extends string>(...required: Name[]) =>
  z.looseObject(Object.fromEntries(required.map((one) => [one, method])));
const object = z.looseObject({});

const actor = {
  name,
  site: siteSchema,
  claims: z.array(capabilitySchema),
  touches: method,
  gaps: method,
  probe: method,
  dependsOn: optionalMethod,
};

/** Every member of every kind of offer: one that isn't here doesn't compile. */
const members: { readonly [Kind in keyof Offers]: { readonly [Member in keyof Offers[Kind]]-?: z.ZodType } } =
  {
    sandbox: {
      ...actor,
      site: z.literal("sandbox"),
      rootfs: z.enum(["host", "image", "image-with-mounts"]).optional(),
      image: z.string().min(1).optional(),
      opensFolders: z.literal(true).optional(),
      hides: optionalMethod,
      reads: optionalMethod,
      madeConnection: optionalMethod,
      open: method,
      takeover: methods("takeOver", "discard").optional(),
      discardRemains: optionalMethod,
      layers: methods("system", "supports", "has").optional(),
      close: optionalMethod,
    },
    executor: { ...actor, kind: name, issues: method, prepare: optionalMethod, execute: method },
    delivery: { ...actor, publish: method },
    harness: {
      ...actor,
      id: name,
      aliases: z.array(name),
      supportsPermissionRequests: z.boolean(),
      ownTools: object.optional(),
      skillsFolder: z.string().min(1).optional(),
      maxToolCallMs: z.number().positive(),
      installation: methods("installed", "install").optional(),
      issues: method,
      model: optionalMethod,
      directModelGaps: optionalMethod,
      requiredPaths: method,
      visibleCredentials: method,
      hideableCredentials: optionalMethod,
      start: method,
      prewarm: z.array(object).optional(),
      prepare: optionalMethod,
    },
    toolSource: { ...actor, connection: z.enum(["http", "stdio"]), issues: method, connect: method },
    gateway: { ...actor, issues: method, unpriced: method, open: method },
    observer: {
      name,
      observe: method,
      refused: optionalMethod,
      lost: optionalMethod,
      posted: optionalMethod,
      prewarmed: optionalMethod,
      logged: optionalMethod,
      watch: optionalMethod,
      scrape: optionalMethod,
      close: optionalMethod,
    },
    store: { name, open: method },
    blobs: { name, open: method },
    dialect: {
      name,
      translate: method,
      keys: z.record(z.string(), z.array(z.string())),
      fields: z.record(z.string(), object).optional(),
      command: optionalMethod,
      harnesses: z.record(z.string(), z.string()).optional(),
      tokenHeaders: z.array(z.string()).optional(),
      differences: z.array(object).optional(),
    },
    door: {
      name: z
        .string()
        .max(maxNameCharacters)
        .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "must be letters, digits and hyphens"),
      routes: z
        .array(
          z.looseObject({
            method: z.enum(["GET", "POST", "DELETE"]),
            path: z.string().startsWith("/"),
            summary: z.string().min(1),
            handle: method,
          }),
        )
        .optional(),
      stdio: optionalMethod,
    },
    toolPolicy: { name, issues: method, forRun: method },
  };

/** What an offer lacks of its kind's interface, of the vocabulary of capabilities and of that of sites; undefined for nothing. */
export function offerProblems(kind: keyof Offers, offer: unknown): string | undefined {
  const shape = z.looseObject(members[kind]);
  const read = shape.safeParse(offer);
  if (!read.success) return shapeProblems(read.error, shape, offer, { all: true });
  if (kind === "door") return foreignPath(read.data);
  if (kind !== "harness" || read.data.prewarm === undefined || read.data.prepare !== undefined)
    return undefined;
  return "prepare is required, since there is prewarm: a method";
}

const doorPaths = z.looseObject({
  name: z.string(),
  routes: z.array(z.looseObject({ path: z.string() })).default([]),
});

/** A route of a door that is another's, as text. */
function foreignPath(door: unknown): string | undefined {
  const { name, routes } = doorPaths.parse(door);
  const foreign = routes.findIndex(({ path }) => path !== `/${name}` && !path.startsWith(`/${name}/`));
  return foreign === -1 ? undefined : `routes[${foreign}].path must be /${name}, or begin with /${name}/`;
}
