import type { Boundary } from "../boundary/index.js";
import { type Capability, domainOf, type Gap } from "../contract/index.js";
import type {
  Actor,
  ActorGap,
  ActorKind,
  Harness,
  Readability,
  RequiredPath,
  SandboxBackend,
} from "../plugin/index.js";
import type { Probed } from "./candidates.js";
import { callPure } from "./plugin-call.js";
import { pluginReturns } from "./plugin-returns.js";
import { type BoundedRequest, ofBoundary, type Requirement } from "./requirements.js";

/** One use of one actor, as the planner checks it. */
interface ActorUse<Use> {
  /** Default: a sandbox. */
  readonly kind?: ActorKind;
  readonly probed: Probed<Actor<Use>>;
  readonly use: Use;
  /** The requirements that its own claims must cover. Gaps that it states itself count for all. */
  readonly binding: readonly Requirement[];
  /** The tool or MCP server that brings the actor in. */
  readonly subject?: string | undefined;
  /** Gaps in this run, in addition to those that `gaps` returns. */
  readonly further?: readonly ActorGap[];
}

/** The requirements that an actor's use doesn't cover: it covers `claims ∩ probed`, less what `gaps` returns. Pure. */
export function gapsOf<Use>(
  { boundary, required }: Pick<BoundedRequest, "boundary" | "required">,
  { kind = "sandbox", probed, use, binding, subject, further = [] }: ActorUse<Use>,
): readonly Gap[] {
  if (required.length === 0) return [];
  const { actor } = probed;
  // A stated gap counts by its domain: an actor may state a gap of hosts where ranges are required.
  const domains = new Set(required.map(({ capability }) => domainOf(capability)));
  const gaps: Gap[] = [
    ...callPure(actor, "gaps", pluginReturns.gaps, () => actor.gaps(boundary, use)),
    ...further,
  ]
    .filter(({ capability }) => domains.has(domainOf(capability)))
    .map((gap) => withActor(actor.name, gap, subject, requirerOf(gap.capability, required)));
  for (const { capability, because, subject: asker } of binding) {
    if (gaps.some((gap) => gap.capability === capability)) continue;
    const missing = whyUnproven(probed, capability, { kind, subject });
    if (missing === undefined) continue;
    // Another enforcement helps only where the actor isn't the sandbox's.
    const accept = actor.site === "runner" && boundary.enforcement === "strict" ? `, ${orAccept}` : "";
    const gap = { capability, reason: missing.reason, fix: `${missing.fix}${accept}` };
    gaps.push(withActor(actor.name, gap, subject ?? asker, because));
  }
  return gaps;
}

/** What a sandbox doesn't cover of a boundary on this host, whatever runs in it. Pure. */
export function boundaryGaps(boundary: Boundary, probed: Probed<Actor<void>>): readonly Gap[] {
  const required = ofBoundary(boundary);
  return gapsOf({ boundary, required }, { probed, use: undefined, binding: required });
}

const orAccept = 'or accept this with sandboxPermission.enforcement "best_effort"';

/** What of the request requires it; a gap of hosts may stand where ranges are required. */
function requirerOf(capability: Capability, required: readonly Requirement[]): string | undefined {
  const same = required.find((one) => one.capability === capability);
  return (same ?? required.find((one) => domainOf(one.capability) === domainOf(capability)))?.because;
}

/** The words for what brings an actor into a run. */
const subjectWords: Partial<Record<ActorKind, string>> = { executor: "tool", toolSource: "MCP server" };

/** Why a capability isn't in `claims ∩ probed`; undefined when it is. @throws PluginBrokeContract for a probe without usable findings */
export function whyUnproven(
  { actor, findings, fault, plugin }: Probed<Actor<never>>,
  capability: Capability,
  { kind, subject }: { readonly kind: ActorKind; readonly subject?: string | undefined } = {
    kind: "sandbox",
  },
): Pick<Gap, "reason" | "fix"> | undefined {
  // What a broken probe says nothing about isn't a lack of this host.
  if (fault !== undefined && actor.claims.includes(capability)) throw fault;
  const finding = findings.get(capability);
  if (finding === undefined || !actor.claims.includes(capability)) {
    const ofPlugin = plugin === undefined ? "" : ` of plugin ${plugin}`;
    const isClaimed = actor.claims.includes(capability);
    const lacks = isClaimed ? "has no finding about it on this host" : "doesn't claim it";
    const reason = `the ${kind} '${actor.name}'${ofPlugin} ${lacks}`;
    if (kind === "sandbox") return { reason, fix: "name another sandbox that does, or restrict less" };
    const word = subjectWords[kind] ?? "part";
    return {
      reason,
      fix: `remove the ${word}${subject === undefined ? "" : ` '${subject}'`} or restrict less`,
    };
  }
  return finding.proven ? undefined : { reason: finding.reason, fix: finding.fix };
}

function withActor(
  actor: string,
  { capability, reason, fix }: ActorGap,
  subject: string | undefined,
  requiredBy: string | undefined,
): Gap {
  return {
    actor,
    capability,
    reason,
    fix,
    ...(subject === undefined ? {} : { subject }),
    ...(requiredBy === undefined ? {} : { requiredBy }),
  };
}

/** The host's files that an agent needs in a backend's sandboxes. @throws PluginBrokeContract */
export function requiredPathsOf(
  harness: Harness,
  { rootfs = "host" }: SandboxBackend,
): readonly RequiredPath[] {
  return callPure(harness, "requiredPaths", pluginReturns.requiredPaths, () => harness.requiredPaths(rootfs));
}

/** Whether programs in a backend's sandboxes could read them. Pure. @throws PluginBrokeContract */
export function readabilityIn(sandbox: SandboxBackend, harness: Harness): Readability {
  if (sandbox.reads === undefined) return true;
  const paths = requiredPathsOf(harness, sandbox);
  return callPure(sandbox, "reads", pluginReturns.readability, () => sandbox.reads?.(paths));
}

/** The gap of a boundary under which the agent couldn't read its own files. Pure. */
export function unreadableGaps(
  { required: [first] }: Pick<BoundedRequest, "required">,
  harness: Harness | undefined,
  sandbox: SandboxBackend | undefined,
): readonly Gap[] {
  if (first === undefined || harness === undefined || sandbox === undefined) return [];
  const readability = readabilityIn(sandbox, harness);
  if (readability === true) return [];
  const { capability, because } = first;
  return [{ actor: sandbox.name, capability, ...readability, requiredBy: because }];
}
