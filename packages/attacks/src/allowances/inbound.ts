import { type Allowance, blocked, reached, type Stage } from "../attacks/attack.js";
import { tryPort } from "../attacks/inbound-ports/enter.js";
import { withServer } from "../attacks/inbound-ports/server-inside.js";

export const inboundAllowances = {
  "inbound.ports": [
    {
      id: "inbound.ports/listed",
      capability: "inbound.ports",
      title: "a server on a listed port can be reached",
      perform: (stage: Stage) =>
        withServer(stage, stage.sandbox, async ({ listed, answer }) => {
          const { isReached, detail } = await tryPort(stage.sandbox, listed, answer);
          return isReached ? reached(detail) : blocked(detail);
        }),
    } satisfies Allowance,
  ],
} as const;
