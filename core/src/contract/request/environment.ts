import { z } from "zod";
import { environmentValueSchema } from "../values/names.js";
import { workspaceGlobSchema, workspacePathSchema } from "../values/workspace-path.js";
import { setupCredentialSchema } from "./boundary/credentials.js";
import { sandboxPermissionSchema } from "./boundary/sandbox-permission.js";
import { limits } from "./limits.js";

const commandSchema = z
  .string()
  .max(limits.setupCharacters)
  // Texts beyond the limit reach this check too, so it takes time proportional to their length.
  .regex(/^(?=[\0\s]*[^\0\s])[^\0]*$/, "must be a command, without NUL");

/** The image that the sandbox must have, and the setup that is prepared once and kept for later runs. */
export const environmentSchema = z.strictObject({
  image: z
    .string()
    .regex(/^[a-z0-9][\w./:@-]*$/, "must be the name of an image, such as node:22")
    .max(limits.imageCharacters)
    .optional()
    .meta({
      description:
        "The image that the run's sandbox must have, by its name: `node:22` is also `docker.io/library/node:22`. Only backends that are configured with it are chosen. Default: that of the chosen backend.",
    }),
  setup: z
    .array(commandSchema)
    .max(limits.setupCommands)
    .default([])
    .meta({
      description: `Commands for \`/bin/sh\`, run one after the other in the workspace, at most ${limits.setupCommands}. One that doesn't exit with 0 fails the run. What their processes leave running ends with them. At least one, unless there is a \`devcontainer\`, or nothing but an \`image\`.`,
    }),
  devcontainer: z
    .strictObject({
      path: workspacePathSchema.optional().meta({
        description:
          "The file in the repository. Default: `.devcontainer/devcontainer.json`, else `.devcontainer.json`.",
      }),
      image: z.enum(["same", "ignore"]).default("same").meta({
        description:
          "`same`, the default: an `image` of the file must be the sandbox's own · `ignore`: the sandbox's own is used whatever the file names.",
      }),
    })
    .optional()
    .meta({
      description:
        "Takes commands and variables from the `devcontainer.json` of the request's one git source, at its commit: `onCreateCommand`, `updateContentCommand`, `postCreateCommand`, which run before `setup`, `containerEnv` and `remoteEnv`. What it asks for and Ambit doesn't do fails the run. `{}` for the usual file. Default: it isn't read.",
    }),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable's name: letters, digits and _"),
      environmentValueSchema.max(limits.setupCharacters),
    )
    .default({})
    .meta({ description: "Variables of the commands, in plain text. The agent doesn't get them." }),
  inputs: z
    .array(workspaceGlobSchema)
    .min(1)
    .max(limits.setupInputs)
    .optional()
    .meta({
      description: `Of the files in \`workspace.sources\`, those that the setup depends on, as globs such as \`**/package-lock.json\`, at most ${limits.setupInputs}. What was prepared is used again until one of them changes, and only what the commands made is kept: files of the sources are always as this request has them. All sources must be of type \`files\`. Default: every file counts.`,
    }),
  credentials: z
    .array(setupCredentialSchema)
    .max(limits.credentials)
    .default([])
    .meta({
      description: `Credentials of the commands, at most ${limits.credentials}, as \`credentials\` of a request, without \`refresh\`: the commands have placeholders, and the agent has neither. What is kept is searched for them.`,
    }),
  boundary: sandboxPermissionSchema.optional().meta({
    description:
      "What the commands may touch, as in `sandboxPermission`; its `filesystem` is the agent's always. Default: the run's `sandboxPermission`.",
  }),
  cache: z.enum(["use", "refresh", "off"]).default("use").meta({
    description:
      "`use`, the default: an environment that was prepared from the same commit, commands and boundary is used again, by runs of the same project only · `refresh`: it is prepared again, and the new one kept · `off`: it isn't kept.",
  }),
  prepareOnly: z.boolean().default(false).meta({
    description:
      "True: the run prepares the environment, or finds it prepared, and ends without an agent. Default: false.",
  }),
});
export type EnvironmentRequest = z.infer<typeof environmentSchema>;

/** Whether an environment has anything to prepare, and not only an image to choose. Pure. */
export function hasSetup(environment: EnvironmentRequest | undefined): environment is EnvironmentRequest {
  return (
    environment !== undefined && (environment.setup.length > 0 || environment.devcontainer !== undefined)
  );
}
