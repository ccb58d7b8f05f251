import { type ProxyTrial, tryProxies } from "@ambit/egress/client";
import type { Overrides } from "../../configuration/load.js";
import { gatesOf, parseRequire, rulesOf } from "../../gate.js";
import { agentNotices, agentsIn, untestedOf } from "../../host.js";
import { doctorReport, isLacking } from "../display/doctor-report.js";
import { columnsOf } from "../display/layout.js";
import { Progress } from "../display/progress.js";
import { exitCodes } from "../exit-codes.js";
import { openForCommand, probeAll } from "../open-command.js";

export interface DoctorOptions extends Overrides {
  readonly json?: boolean;
  /** How each capability was proven. */
  readonly verbose?: boolean;
  /** `--require`, in place of what the configuration requires. */
  readonly require?: string;
}

/**
 * `ambit doctor`: probes every actor, and says what this host can guarantee, what it can't, and the fix. What it finds is kept for
 * `ambit run`. Its exit code is a gate: 3 where nothing is guaranteed, or not what is required.
 */
export async function doctor(options: DoctorOptions): Promise<number> {
  const required = options.require === undefined ? undefined : parseRequire(options.require);
  const progress = new Progress();
  progress.step("loading plugins");
  try {
    // What a probe reports is in the report.
    const ambit = await openForCommand(options, { logLevel: "error" });
    const { registry, settings } = ambit;
    // What was found earlier isn't taken: whoever asks has changed something.
    registry.invalidateAll();
    const actors = await probeAll(ambit, progress);
    const { upstreamProxy } = settings;
    if (upstreamProxy !== undefined) progress.step("trying the way out");
    const proxies = upstreamProxy === undefined ? [] : await tryProxies(upstreamProxy);
    progress.end();
    const rules = required === undefined ? rulesOf(settings) : [{ name: "--require", required }];
    const gates = gatesOf(rules, registry.knownCandidates());
    const agents = await agentsIn(registry);
    const isRefused = isLacking({ actors, gates });
    const notices = [
      ...settings.notices,
      ...proxies.filter(({ works }) => !works).map(wayOut),
      ...(await agentNotices(registry, agents)),
    ];
    const report = {
      actors,
      untestedAgents: untestedOf(agents),
      gates,
      ...(upstreamProxy && { proxies }),
    };
    process.stdout.write(
      options.json === true
        ? `${JSON.stringify(report, undefined, 2)}\n`
        : doctorReport(
            { actors, gates, notices, holds: proxies.filter(({ works }) => works).map(wayOut) },
            { columns: columnsOf(process.stdout), verbose: options.verbose === true },
          ),
    );
    return isRefused ? exitCodes.boundaryRefused : exitCodes.ok;
  } finally {
    progress.end();
  }
}

function wayOut({ proxy, works, observation }: ProxyTrial): string {
  const fix = works ? "" : " (fix: correct egress.proxy, or start the proxy)";
  return `The way out, ${proxy}, ${works ? "works" : "doesn't work"}: it ${observation}${fix}`;
}
