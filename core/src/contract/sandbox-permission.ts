import { z } from "zod";
import { limits } from "./limits.js";
import { workspacePathSchema } from "./workspace-path.js";

export const networkModes = ["on", "off", "allowlist"] as const;
export const filesystemModes = ["on", "workspace", "readonly", "off"] as const;

/** `"restricted"` allows nothing: the same as `"off"`. */
const networkShorthandSchema = z.enum(["on", "off", "restricted"]);

const networkSchema = z
  .strictObject({
    /** Default: `allowlist` when a list is given, else `on`. */
    mode: z.enum(networkModes).optional(),
    /** `name`, `*.suffix`, `address` or `range/prefix`, each with an optional `:port`. Empty allows nothing. */
    allowlist: z.array(z.string().min(1).max(512)).max(limits.allowlist).optional(),
  })
  .superRefine(({ mode, allowlist = [] }, context) => {
    if (mode === undefined || mode === "allowlist" || allowlist.length === 0) return;
    const message = `must be empty when the mode is "${mode}": remove it, or set the mode to "allowlist"`;
    context.addIssue({ code: "custom", path: ["allowlist"], message });
  });

/** A pattern would be taken for a name, and hold nothing of what it means. */
const listedPathSchema = workspacePathSchema.refine((path) => !/[*?[]/.test(path), {
  error: "must be a path without *, ? and [: patterns aren't supported; list the folder that holds the files",
});

const filesystemSchema = z
  .strictObject({
    mode: z.enum(filesystemModes).optional(),
    /** Relative to the workspace; paths, not patterns. */
    readable: z.array(listedPathSchema).max(100).optional(),
    writable: z.array(listedPathSchema).max(100).optional(),
    /** Hides a path with all that is in it. */
    denied: z.array(listedPathSchema).max(100).optional(),
  })
  .superRefine(({ readable = [], writable = [], denied = [] }, context) => {
    for (const [list, paths] of Object.entries({ readable, writable })) {
      for (const [index, path] of paths.entries()) {
        const hiding = denied.find((other) => isIn(path, other));
        if (hiding === undefined) continue;
        const message = `must not lie in ${JSON.stringify(hiding)}, which is denied with all that is in it: remove one of them`;
        context.addIssue({ code: "custom", path: [list, index], message });
      }
    }
  });

function isIn(path: string, folder: string): boolean {
  const names = (text: string) => text.split("/").filter((name) => name !== "" && name !== ".");
  const inner = names(path);
  return names(folder).every((name, index) => inner[index] === name);
}

const resourcesSchema = z.strictObject({
  /** MiB of memory, file pages of scratch included. */
  memoryMb: z.int().positive().optional(),
  processes: z.int().positive().optional(),
  /** Processor cores; fractions allowed. */
  cpus: z.number().positive().optional(),
  /** MiB of workspace disk. */
  diskMb: z.int().positive().optional(),
});

/** What the run may touch. Absent means `on`: no boundary (host loopback is reachable then). */
export const sandboxPermissionSchema = z.strictObject({
  network: z.union([networkShorthandSchema, networkSchema]).optional(),
  filesystem: z.union([z.enum([...filesystemModes, "restricted"]), filesystemSchema]).optional(),
  resources: resourcesSchema.optional(),
  secrets: z.enum(["visible", "hidden"]).optional(),
  /** `best_effort` accepts what an actor outside the sandbox can't guarantee; it never weakens the sandbox. */
  enforcement: z.enum(["strict", "best_effort"]).default("strict"),
});
export type SandboxPermission = z.infer<typeof sandboxPermissionSchema>;
