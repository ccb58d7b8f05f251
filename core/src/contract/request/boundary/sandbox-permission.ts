import { z } from "zod";
import { workspacePathSchema } from "../../values/workspace-path.js";
import { limits } from "../limits.js";

export const networkModes = ["on", "off", "allowlist"] as const;
export const filesystemModes = ["on", "workspace", "readonly", "off"] as const;

const networkShorthandSchema = z.enum(["on", "off", "restricted"]);

const networkSchema = z
  .strictObject({
    mode: z.enum(networkModes).optional().meta({
      description:
        "`on`: no boundary, the host's own loopback is reachable · `off`: nothing is reachable · `allowlist`: only what is listed. Default: `allowlist` where there is a list, else `on`.",
    }),
    allowlist: z
      .array(z.string().min(1).max(512))
      .max(limits.allowlist)
      .optional()
      .meta({
        description: `\`name\`, \`*.suffix\`, \`address\` or \`range/prefix\`, each with an optional \`:port\`; at most ${limits.allowlist.toLocaleString("en")}. Empty allows nothing; refused under \`on\` and \`off\`.`,
      }),
  })
  .superRefine(({ mode, allowlist = [] }, context) => {
    if (mode === undefined || mode === "allowlist" || allowlist.length === 0) return;
    const message = `must be empty when the mode is "${mode}": remove it, or set the mode to "allowlist"`;
    context.addIssue({ code: "custom", path: ["allowlist"], message });
  });

/** A path that is taken literally. Patterns are refused, since they would protect nothing. */
const listedPathSchema = workspacePathSchema.refine((path) => !/[*?[]/.test(path), {
  error: "must be a path without *, ? and [: patterns aren't supported; list the folder that holds the files",
});

const listedPathsSchema = z.array(listedPathSchema).max(100).optional();

const filesystemSchema = z
  .strictObject({
    mode: z.enum(filesystemModes).optional().meta({
      description:
        "`on`: no boundary · `workspace`: writes succeed only in the workspace and scratch · `readonly`: only in scratch · `off`: there is no workspace. All but `on` hide the host's files.",
    }),
    readable: listedPathsSchema.meta({
      description:
        "Paths of the workspace that can be read and not written. Paths, not patterns, in all three lists.",
    }),
    writable: listedPathsSchema.meta({ description: "The only paths of the workspace that can be written." }),
    denied: listedPathsSchema.meta({
      description: "Paths of the workspace that can't be accessed, with everything in them.",
    }),
  })
  .superRefine(({ readable = [], writable = [], denied = [] }, context) => {
    const folders = denied.map((path) => ({ path, within: asFolder(path) }));
    for (const [list, paths] of Object.entries({ readable, writable })) {
      for (const [index, path] of paths.entries()) {
        const given = asFolder(path);
        const hiding = folders.find(({ within }) => given.startsWith(within));
        if (hiding === undefined) continue;
        const message = `must not be in ${JSON.stringify(hiding.path)}, which is denied with everything in it: remove one of them`;
        context.addIssue({ code: "custom", path: [list, index], message });
      }
    }
  });

/** Brings a path into one spelling, so that the thousands of pairs that a request may have can be compared as texts. */
function asFolder(path: string): string {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  return `${names.join("/")}/`;
}

const resourcesSchema = z.strictObject({
  memoryMb: z.int().positive().optional().meta({
    description: "MiB of memory, file pages of scratch included.",
  }),
  processes: z.int().positive().optional().meta({ description: "Processes and threads at one time." }),
  cpus: z.number().positive().optional().meta({ description: "Processor cores; fractions allowed." }),
  diskMb: z.int().positive().optional().meta({ description: "MiB of workspace disk." }),
});

/** What the run may touch. Absent means `on`: no boundary (the host's loopback is reachable then). */
export const sandboxPermissionSchema = z.strictObject({
  network: z.union([networkShorthandSchema, networkSchema]).optional().meta({
    description: 'The object, or `"on"`, `"off"`, or `"restricted"`, which is the same as `"off"`.',
  }),
  filesystem: z
    .union([z.enum([...filesystemModes, "restricted"]), filesystemSchema])
    .optional()
    .meta({ description: 'The object, or its mode; `"restricted"` is the same as `"off"`.' }),
  resources: resourcesSchema.optional().meta({
    description: "Limits of the whole session, tools included. Absent: none.",
  }),
  secrets: z.enum(["visible", "hidden"]).optional().meta({
    description:
      "`hidden`: no credential of this request can be read in the sandbox. Default: `visible`; the receipt names those that are.",
  }),
  enforcement: z.enum(["strict", "best_effort"]).default("strict").meta({
    description:
      "`strict`, the default: every gap refuses the run. `best_effort` accepts gaps of what acts outside the sandbox, and the receipt names them; it never weakens the sandbox.",
  }),
});
export type SandboxPermission = z.infer<typeof sandboxPermissionSchema>;

/** A server in the sandbox that gets a URL on the runner. */
export const portSchema = z.strictObject({
  port: z.int().min(1_024).max(65_535).meta({
    description:
      "The TCP port where a program of the run will listen, on the sandbox's own loopback or on every address of it; 1024 or higher.",
  }),
  name: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, {
      error: "must be 1 to 32 of a-z, 0-9 and -, and begin and end with a letter or digit",
    })
    .meta({ description: "Names it in the event `preview`: 1 to 32 of `a-z 0-9 -`. Unique in a request." }),
});
export type Port = z.infer<typeof portSchema>;
