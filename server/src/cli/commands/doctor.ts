import { type ActorDescription, capabilities } from "@ambit/core";
import { type ProxyTrial, tryProxies } from "@ambit/egress/client";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { printable } from "../../logging/printable.js";
import { openAmbit } from "../../open.js";
import { endsCommand } from "../ends-command.js";
import { exitCodes } from "../exit-codes.js";
import { versionText } from "./agents.js";

/** `ambit doctor`: probes every actor, and says what this host can guarantee, what it can't, and the fix. */
export async function doctor(options: Overrides & { readonly json?: boolean }): Promise<number> {
  const environment = takeEnvironment(process.env);
  const { registry, settings } = await openAmbit({
    environment,
    overrides: options,
    logLevel: "warn",
    unhandled: endsCommand,
  });
  const actors = await registry.describe();
  const { upstreamProxy } = settings;
  const proxies = upstreamProxy === undefined ? [] : await tryProxies(upstreamProxy);
  const sandboxes = actors.filter(({ kind }) => kind === "sandbox");
  const untested = registry.knownCandidates().harnesses.flatMap(({ actor }) => {
    const installed = actor.installation?.installed();
    if (installed === undefined || installed.version === installed.tested) return [];
    return [{ agent: actor.id, ...installed }];
  });
  if (options.json === true)
    process.stdout.write(
      `${JSON.stringify({ actors, untestedAgents: untested, ...(upstreamProxy && { proxies }) }, undefined, 2)}\n`,
    );
  else {
    const lines = untested.map(
      (found) =>
        `${found.agent} ${versionText(found)}: whether it asks before it acts was tested with that version only. Install it: ambit agents install ${found.agent}`,
    );
    lines.unshift(...proxies.map(wayOut));
    process.stdout.write(report(actors, sandboxes) + lines.map((line) => `${printable(line)}\n`).join(""));
  }
  return exitCodes.ok;
}

function wayOut({ proxy, works, observation }: ProxyTrial): string {
  const fix = works ? "" : " (fix: correct egress.proxy, or start the proxy)";
  return `The way out, ${proxy}, ${works ? "works" : "doesn't work"}: it ${observation}${fix}`;
}

function report(actors: readonly ActorDescription[], sandboxes: readonly ActorDescription[]): string {
  const claiming = actors.filter(({ claims }) => claims.length > 0);
  return [...claiming.flatMap(actorLines), ...summary(sandboxes)]
    .map((line) => `${printable(line)}\n`)
    .join("");
}

function actorLines({ kind, name, site, claims, findings, probedAt }: ActorDescription): string[] {
  const proven: string[] = [];
  /** Capabilities by a warning that they share. */
  const warnings = new Map<string, string[]>();
  /** Capabilities by the reason why they aren't proven, which they often share. */
  const unproven = new Map<string, string[]>();
  for (const capability of claims) {
    const finding = findings.find((found) => found.capability === capability);
    if (finding?.proven === true) {
      proven.push(`  proven      ${capability}: ${finding.how}`);
      const { warning } = finding;
      if (warning !== undefined) warnings.set(warning, [...(warnings.get(warning) ?? []), capability]);
      continue;
    }
    const reason = finding?.reason ?? "its probe reported nothing about it";
    const why = finding === undefined ? reason : `${reason}\n              fix: ${finding.fix}`;
    unproven.set(why, [...(unproven.get(why) ?? []), capability]);
  }
  const warned = [...warnings].map(([warning, names]) => `  warning     ${names.join(", ")}: ${warning}`);
  const missing = [...unproven].map(([why, names]) => `  not proven  ${names.join(", ")}: ${why}`);
  return [`${kind} ${name} (acts on the ${site}, probed ${probedAt})`, ...proven, ...warned, ...missing, ""];
}

/** For each capability, the sandboxes that guarantee it here. */
function summary(sandboxes: readonly ActorDescription[]): string[] {
  const by = (capability: string) =>
    sandboxes
      .filter(({ findings }) => findings.some((found) => found.proven && found.capability === capability))
      .map(({ name }) => name);
  const guaranteed = capabilities.filter((capability) => by(capability).length > 0);
  const missing = capabilities.filter((capability) => by(capability).length === 0);
  return [
    guaranteed.length === 0
      ? "This host can't guarantee anything: runs with a boundary are refused, runs without one are unconfined."
      : `This host can guarantee: ${guaranteed.map((capability) => `${capability} (${by(capability).join(", ")})`).join(", ")}`,
    ...(missing.length === 0 ? [] : [`It can't guarantee, and refuses: ${missing.join(", ")}`]),
  ];
}
