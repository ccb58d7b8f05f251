import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { tryInbound } from "@ambit/attacks/standard-probe";
import { freePorts, listeningPort } from "@ambit/backend-kit";
import type { CanaryBench, CanaryTrial } from "./bench.js";

/** As on every other backend, with a sandbox of its own, since it is closed in the end. */
export const inboundTrial: CanaryTrial = {
  shows: ["inbound.ports"],
  async run(bench: CanaryBench) {
    const secret = `ambit-decoy-${randomUUID()}`;
    const decoy = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", () => socket.end(secret));
    });
    try {
      await once(decoy.listen(0, "127.0.0.1"), "listening");
      const ofHost = listeningPort(decoy);
      const [own = 0, others = 0, unlisted = 0] = await freePorts(3);
      const listed = [own, others, ofHost];
      const one = await bench.openAnother(listed);
      bench.letIn(listed);
      const ports = { own, others, unlisted, ofHost };
      const probe = { node: bench.account.config.bridge.node };
      return await tryInbound({ probe, signal: bench.signal, one, other: bench.sandbox, ports, secret });
    } finally {
      decoy.close();
    }
  },
};
