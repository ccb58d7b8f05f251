/** What an actor doesn't cover of a boundary: the sandbox, further sandboxes of Ambit's own, credentials, and each participant. */

import type { Boundary } from "../boundary.js";
import {
  type Capability,
  type Domain,
  domainOf,
  type Gap,
  type McpServer,
  type RunRequest,
  type ToolSpec,
} from "../contract/index.js";
import type {
  Actor,
  ActorGap,
  ActorKind,
  Harness,
  HiddenCredential,
  Hiding,
  Readability,
  RequiredPath,
  SandboxBackend,
  ToolExecutor,
  ToolSource,
} from "../plugin/index.js";
import type { PlannedActor, Probed } from "./candidates.js";
import { callPure, pluginReturns } from "./plugin-call.js";
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
    const missing = evidenceGap(probed, capability, { kind, subject });
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

/** The part of the request that requires a capability. An actor may state a gap of hosts if ranges are required. */
function requirerOf(capability: Capability, required: readonly Requirement[]): string | undefined {
  const same = required.find((requirement) => requirement.capability === capability);
  return (same ?? required.find((requirement) => domainOf(requirement.capability) === domainOf(capability)))
    ?.because;
}

/** The words for what brings an actor into a run. */
const subjectWords: Partial<Record<ActorKind, string>> = { executor: "tool", toolSource: "MCP server" };

/**
 * The reason why a capability isn't in `claims ∩ probed`, with its fix; undefined if it is.
 *
 * @throws PluginBrokeContract for a probe without usable findings
 */
export function evidenceGap(
  { actor, findings, fault, plugin }: Probed<Actor<never>>,
  capability: Capability,
  { kind, subject }: { readonly kind: ActorKind; readonly subject?: string | undefined } = {
    kind: "sandbox",
  },
): Pick<Gap, "reason" | "fix"> | undefined {
  // A broken probe says nothing about this host, so its silence must not be reported as a lack of the host.
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

/** Whether programs in a backend's sandboxes could read an agent's files. Pure. @throws PluginBrokeContract */
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

/** A further sandbox, for one of Ambit's own programs such as git. It contains nothing of the agent's. */
export interface OwnSandbox {
  /** The part of the request that needs it: `workspace.sources[0]`. */
  readonly subject: string;
  /**
   * The backends that may open it. `run`: only the run's, since the agent's sandbox must be able to use its files. `any`:
   * another one if the run's backend can't enforce this boundary.
   */
  readonly backend: "run" | "any";
  readonly boundary: Boundary;
  readonly secrets: readonly HiddenCredential[];
}

const onHostFiles = {
  capability: "filesystem.workspace-only",
  reason: 'filesystem is "on", and its sandboxes have the files of this host',
  fix: 'set sandboxPermission.filesystem to "workspace", or name a sandbox with an image',
} as const;

/**
 * Chooses the backend of a further sandbox: the run's if it covers the boundary, or else the first one that does, if the
 * sandbox may have another. Without one, returns the gaps of the run's backend. Pure.
 *
 * @param all the backends that the caller may use.
 */
export function chooseOwn(
  sandbox: OwnSandbox,
  run: Probed<SandboxBackend>,
  all: readonly Probed<SandboxBackend>[],
): { readonly chosen: Probed<SandboxBackend> } | { readonly gaps: readonly Gap[] } {
  const gaps = ownGaps(sandbox, run);
  if (gaps.length === 0) return { chosen: run };
  if (sandbox.backend === "run") return { gaps };
  const other = all.find((backend) => backend !== run && ownGaps(sandbox, backend).length === 0);
  if (other !== undefined) return { chosen: other };
  return { gaps: gaps.map((gap) => ({ ...gap, fix: `${gap.fix}; ${anotherFix}` })) };
}

/** Whether a plan lacks a backend for a further sandbox that any backend may open. Pure. */
export function lacksBackend(
  { gaps }: { readonly gaps: readonly Gap[] },
  ownSandboxes: readonly OwnSandbox[],
): boolean {
  const subjects = ownSandboxes.filter(({ backend }) => backend === "any").map(({ subject }) => subject);
  return gaps.some(({ subject = "" }) => subjects.includes(subject));
}

const anotherFix =
  "or add a backend that covers it to the configuration, such as @ambit/sandbox-local: it needn't be the run's";

/** The parts of a further sandbox's boundary that a backend doesn't cover. Pure. */
export function ownGaps(
  { subject, boundary, secrets }: OwnSandbox,
  probed: Probed<SandboxBackend>,
): readonly Gap[] {
  const required = ofBoundary(boundary);
  const { actor } = probed;
  const isOnHost = boundary.filesystem.mode === "on" && (actor.rootfs ?? "host") === "host";
  return [
    ...(isOnHost ? [{ actor: actor.name, subject, ...onHostFiles }] : []),
    ...gapsOf({ boundary, required }, { probed, use: undefined, binding: required, subject }),
    ...hidingGaps({ boundary, required }, probed, secrets).map((gap) => ({ ...gap, subject })),
  ];
}

const capability = "secrets.hidden";

const noneHidden: Exclude<Hiding, true> = {
  reason: "it keeps no credential outside",
  fix: "name a sandbox that does, or remove the credential",
};

/** Gaps of the request's `credentials` that this sandbox can't keep outside. They are never put inside instead. Pure. */
export function credentialGaps(bounded: BoundedRequest, probed: Probed<SandboxBackend>): readonly Gap[] {
  return hidingGaps(bounded, probed, bounded.request.credentials);
}

/** The gaps of any credentials that a sandbox can't keep outside. Pure. */
function hidingGaps(
  bounded: Pick<BoundedRequest, "boundary" | "required">,
  probed: Probed<SandboxBackend>,
  credentials: readonly HiddenCredential[],
): readonly Gap[] {
  const unproven = evidenceGap(probed, capability);
  // If the boundary requires the capability too, that gap has already been reported.
  if (unproven !== undefined && isRequired(bounded)) return [];
  const actor = probed.actor.name;
  return credentials.flatMap((credential): Gap[] => {
    const hiding = unproven ?? hidingOf(probed.actor, credential, bounded);
    if (hiding === true) return [];
    const reason = `${credential.name} must stay outside: ${hiding.reason}`;
    return [{ actor, capability, reason, fix: hiding.fix, subject: credential.name }];
  });
}

/** The agent's credentials that only its model needs, and whether the sandbox hides each. */
interface HideableCredential {
  readonly credential: HiddenCredential;
  readonly hiding: Hiding;
}

/**
 * The agent's credentials that a sandbox may hide; none unless the boundary says `secrets: "hidden"`. Pure.
 *
 * @param carried the names of those that a model gateway already keeps outside.
 */
export function hideableCredentials(
  bounded: BoundedRequest,
  harness: Harness | undefined,
  sandbox: SandboxBackend | undefined,
  carried: readonly string[],
): readonly HideableCredential[] {
  const { request, boundary } = bounded;
  if (boundary.secrets !== "hidden" || harness?.hideableCredentials === undefined) return [];
  return callPure(harness, "hideableCredentials", pluginReturns.hiddenCredentials, () =>
    harness.hideableCredentials?.(request),
  )
    .filter(({ name, hosts }) => hosts.length > 0 && !carried.includes(name))
    .map((credential) => ({ credential, hiding: hidingOf(sandbox, credential, bounded) }));
}

/** Whether the sandbox can hide one credential. Its claim and probe decide whether it does on this host. */
function hidingOf(
  sandbox: SandboxBackend | undefined,
  credential: HiddenCredential,
  { boundary }: Pick<BoundedRequest, "boundary">,
): Hiding {
  if (sandbox?.hides === undefined) return noneHidden;
  return callPure(sandbox, "hides", pluginReturns.hiding, () => sandbox.hides?.(credential, boundary));
}

/** The actors that could carry a credential of the request into the sandbox. */
interface Carriers {
  readonly sandbox: SandboxBackend | undefined;
  readonly harness: Harness | undefined;
  readonly hideable: readonly HideableCredential[];
  readonly executors: readonly PlannedActor<ToolExecutor, ToolSpec>[];
  readonly toolSources: readonly PlannedActor<ToolSource, McpServer>[];
  /** Names of credentials that stay outside: the sandbox has placeholders for them, or the gateway keeps them. */
  readonly outside: readonly string[];
  /** Why no model gateway keeps the model's; undefined when one does. */
  readonly unrouted: string | undefined;
}

const fix =
  'leave the values out, name a sandbox that can hide them, or set sandboxPermission.secrets to "visible"';

/**
 * Gaps of `secrets.hidden` that the request itself causes: a value that it puts into the sandbox can be read there.
 * Checked here, so that no plugin has to. Pure.
 */
export function secretsInside(bounded: BoundedRequest, carriers: Carriers): readonly Gap[] {
  if (!isRequired(bounded)) return [];
  const values = [
    ...carriers.executors.flatMap(({ probed: { actor }, uses }) =>
      uses.map(({ name, env }) => ({ actor, subject: name, env })),
    ),
    ...carriers.toolSources.flatMap(({ probed: { actor }, uses }) =>
      uses.map(({ name, connection }) => ({
        actor,
        subject: name,
        env: connection.type === "stdio" ? connection.env : undefined,
      })),
    ),
  ];
  return [
    ...agentGaps(bounded.request, carriers),
    ...values.flatMap(({ actor: { name, site }, subject, env = {} }): Gap[] => {
      const names = Object.keys(env);
      if (site !== "sandbox" || names.length === 0) return [];
      const reason = `the request puts ${names.join(", ")} of its env into the sandbox`;
      return [{ actor: name, capability, reason, fix, subject }];
    }),
  ];
}

function agentGaps(
  request: RunRequest,
  { sandbox, harness, hideable, outside, unrouted }: Carriers,
): readonly Gap[] {
  const visible = harness === undefined ? [] : stillVisible(harness, request, outside);
  if (harness === undefined || visible.length === 0) return [];
  const actor = harness.name;
  const reason = `${visible.join(", ")} can be read in the sandbox${unrouted === undefined ? "" : `; ${unrouted}`}`;
  for (const { credential, hiding } of sandbox?.hides === undefined ? [] : hideable) {
    if (hiding === true) continue;
    const why = `${reason} (${credential.name}: ${hiding.reason})`;
    return [{ actor, capability, reason: why, fix: `${hiding.fix}; or ${fix}` }];
  }
  return [{ actor, capability, reason, fix }];
}

/** The names of the credentials that programs in the sandbox can still read. */
export function stillVisible(
  harness: Harness,
  request: RunRequest,
  outside: readonly string[],
): readonly string[] {
  return callPure(harness, "visibleCredentials", pluginReturns.names, () =>
    harness.visibleCredentials(request),
  ).filter((name) => !outside.includes(name));
}

function isRequired({ required }: Pick<BoundedRequest, "required">): boolean {
  return required.some((requirement) => requirement.capability === capability);
}

/** An actor of the run, as the plan judges it and the receipt lists it. */
export interface Participant {
  readonly kind: ActorKind;
  readonly probed: Probed<Actor<never>>;
  /** The domains that the actor's uses act in. */
  readonly touches: readonly Domain[];
  /** The tools or MCP servers it acts for, or what further sandboxes of its are for; empty for other actors. */
  readonly subjects: readonly string[];
  /** Whether its channel is the run's own, which doesn't count as egress: tool delivery and the model gateway. */
  readonly isMediated: boolean;
  /** The run's requirements that the actor doesn't cover. */
  readonly gaps: readonly Gap[];
}

export interface Role<Use> {
  readonly kind: ActorKind;
  readonly probed: Probed<Actor<Use>>;
  readonly uses: readonly Use[];
  /** The name of a use's tool or MCP server. Default: it acts for none. */
  readonly subjectOf?: (use: Use) => string;
  /** Default false. */
  readonly isMediated?: boolean;
  /** Gaps in addition to those that the actor states. Default: none. */
  readonly further?: readonly ActorGap[];
}

/** The sandbox that was chosen, which has no gap. Pure. @param subjects of sandboxes of Ambit's own. Default: the agent's */
export function sandboxParticipant(
  probed: Probed<SandboxBackend>,
  subjects: readonly string[] = [],
): Participant {
  const touches = callPure(probed.actor, "touches", pluginReturns.domains, () => probed.actor.touches());
  return { kind: "sandbox", probed, touches, subjects, isMediated: false, gaps: [] };
}

/** Backends other than the run's that open sandboxes for Ambit's own programs. Pure. */
export function ownParticipants(
  run: Probed<SandboxBackend>,
  backends: ReadonlyMap<string, Probed<SandboxBackend>>,
): readonly Participant[] {
  const others = new Set([...backends.values()].filter((backend) => backend !== run));
  return [...others].map((other) => {
    const subjects = [...backends].filter(([, backend]) => backend === other).map(([subject]) => subject);
    return sandboxParticipant(other, subjects);
  });
}

/** The participation of an actor other than a sandbox. Pure. */
export function participantOf<Use>(bounded: BoundedRequest, role: Role<Use>): Participant {
  const { kind, probed, uses, subjectOf, isMediated = false, further } = role;
  const { actor } = probed;
  const touches = new Set<Domain>();
  const gaps: Gap[] = [];
  for (const use of uses) {
    const touched = callPure(actor, "touches", pluginReturns.domains, () => actor.touches(use));
    for (const domain of touched) touches.add(domain);
    // Only a tool may act at the caller's site, which is the user's browser: listed as outside, never refused.
    if (kind === "executor" && actor.site === "caller") continue;
    // An actor that acts only through the sandbox has the sandbox's guarantees.
    const reached = actor.site === "sandbox" ? [] : touched;
    const bound = isMediated ? reached.filter((domain) => domain !== "network") : reached;
    const binding = bounded.required.filter(({ capability }) => bound.includes(domainOf(capability)));
    gaps.push(...gapsOf(bounded, { kind, probed, use, binding, subject: subjectOf?.(use), further }));
  }
  const subjects = subjectOf === undefined ? [] : uses.map(subjectOf);
  return { kind, probed, touches: [...touches], subjects, isMediated, gaps };
}
