/** A host whose local sandbox can prove nothing: each of its probes fails. */
import agenta from "@ambit/compat-agenta";
import callback from "@ambit/executor-callback";
import acp from "@ambit/harness-acp";
import mcpClient from "@ambit/mcp-client";
import mcp from "@ambit/mcp-http";
import local from "@ambit/sandbox-local";

const unable = {
  ...local,
  register: (registrar, config) =>
    local.register(
      {
        add: (kind, actor) => {
          actor.probe = async () =>
            actor.claims.map((capability) => ({
              capability,
              proven: false,
              reason: "no user namespaces here (EPERM)",
              fix: "allow unprivileged user namespaces",
            }));
          registrar.add(kind, actor);
        },
      },
      config,
    ),
};

export default {
  plugins: [{ use: unable, config: { unconfined: "prefer" } }, acp, mcp, mcpClient, callback, agenta],
};
