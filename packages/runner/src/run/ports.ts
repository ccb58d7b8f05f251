import { PluginBrokeContract } from "@ambit/core";
import { projectOf } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { PreviewService } from "../operator.js";
import type { Session } from "../session/session.js";
import { type PlannedRun, tokens } from "../tokens.js";

/** Gives the ports of the request their URLs. They stay with the session: its next run gets the same origins. */
@injectable()
export class Ports {
  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.previews) private readonly previews: PreviewService,
    @inject(RunEvents) private readonly events: RunEvents,
  ) {}

  /** @throws PluginBrokeContract; AtCapacity where no more previews fit */
  async open(session: Session): Promise<void> {
    const { request, plan } = this.run;
    const { sandbox } = session;
    for (const { port, name } of request.ports ?? []) {
      if (sandbox.connect === undefined) {
        const who = `Sandbox '${plan.sandbox.actor.name}'`;
        throw new PluginBrokeContract(
          `${who} carries inbound connections, and its session has no connect().`,
        );
      }
      let preview = session.previews.get(port);
      if (preview === undefined) {
        const connect = sandbox.connect.bind(sandbox);
        preview = this.previews.open({ port, project: projectOf(request), connect: () => connect(port) });
        session.previews.set(port, preview);
        session.scope.defer(preview.close);
      }
      const { url, expiresAt } = await preview.link();
      this.events.emit({ type: "data", name: "preview", data: { port, name, url, expiresAt } });
    }
  }
}
