import { join } from "node:path/posix";
import type { RunRequest, Sandbox } from "@ambit/core/plugin";
import type { Launch } from "../driver/start-agent.js";
import type { PlacedProgram } from "../installation/place-program.js";
import type { Profile, ToolEndpoint } from "../profiles/profile.js";
import { modelName } from "./model.js";

export interface LaunchOptions {
  readonly profile: Profile;
  readonly program: PlacedProgram;
  /** The deployer's variables for this agent. */
  readonly env: Readonly<Record<string, string>>;
  readonly request: RunRequest;
  readonly sandbox: Pick<Sandbox, "home" | "workspace" | "placeholders">;
  readonly servers: readonly ToolEndpoint[];
}

/** Pure: what the agent is started with. */
export function planLaunch(options: LaunchOptions): Launch {
  const { profile, program, request, sandbox, servers } = options;
  const { home } = sandbox;
  const model = modelName(profile, request);
  const prepared = profile.prepare({ request, home, model, servers });
  const files = [...prepared.files];
  if (request.agentsMd !== undefined) {
    const path = join(sandbox.workspace, profile.instructions.agentsFile);
    files.push({ path, content: request.agentsMd });
  }
  return {
    argv: [...program.argv, ...profile.arguments, ...(prepared.arguments ?? [])],
    env: {
      PATH: program.searchPath,
      HOME: home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      NO_COLOR: "1",
      ...options.env,
      ...request.modelConnection?.environment,
      ...credentials(request),
      ...sandbox.placeholders,
      ...prepared.environment,
      ...profile.environment,
    },
    files,
    model,
    sessionMeta: { ...profile.sessionMeta, ...prepared.sessionMeta },
    session: prepared.session ?? {},
  };
}

function credentials(request: RunRequest): Record<string, string> {
  const connection = request.modelConnection;
  if (connection === undefined || connection.credentialMode !== "env") return {};
  return Object.fromEntries(connection.credentials.map(({ binding, value }) => [binding.name, value]));
}
