import {
  RequestError,
  type SessionConfigOption,
  type SessionModeState,
} from "@agentclientprotocol/sdk/unstable";
import type { RunRequest } from "@ambit/client";

type Permission = NonNullable<NonNullable<RunRequest["permissions"]>["default"]>;
type Effort = NonNullable<RunRequest["reasoningEffort"]>;

/** What the agent may do unasked. The boundary is the same in each. */
const modes: readonly { readonly id: Permission; readonly name: string; readonly description: string }[] = [
  {
    id: "allow_reads",
    name: "Ask before changes",
    description: "Reading needs no answer; all else is asked.",
  },
  { id: "ask", name: "Ask always", description: "Every call is asked about." },
  { id: "allow", name: "Don't ask", description: "No call is asked about: the boundary confines them." },
  { id: "deny", name: "Only by rules", description: "Only calls that a rule allows are made." },
];

export const efforts: readonly Effort[] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** What of a session the user can choose in the editor. */
export interface Choices {
  /** The request without the user's choices. */
  readonly template: RunRequest;
  /** The models of the command line: the first one is the default. */
  readonly models: readonly string[];
  /** The reasoning efforts that the agent has. */
  readonly efforts: readonly Effort[];
}

/** What the user has chosen in one session. */
export interface Chosen {
  readonly mode?: string;
  /** By the option's id. */
  readonly options: Readonly<Record<string, string>>;
  /** Tools that the user always allows. */
  readonly allowed: readonly string[];
}

export const nothingChosen: Chosen = { options: {}, allowed: [] };

/**
 * What a session that is opened again goes on with, by the request of its latest turn: its model, and its mode where that asks at least
 * as often as what is chosen for new sessions. What the user allowed beyond that is asked about again. Pure.
 */
export function chosenIn(request: RunRequest, { template, models, efforts: offered }: Choices): Chosen {
  const { model, reasoningEffort: effort, permissions } = request;
  const mode = permissions?.default;
  const initial = template.permissions?.default ?? "allow_reads";
  return {
    ...(mode === undefined || strictness.indexOf(mode) < strictness.indexOf(initial) ? {} : { mode }),
    options: {
      ...(model === undefined || !models.includes(model) ? {} : { model }),
      ...(effort === undefined || !offered.includes(effort) ? {} : { effort }),
    },
    allowed: [],
  };
}

/** The later ones ask more often. */
const strictness: readonly Permission[] = ["allow", "allow_reads", "ask", "deny"];

/** The request with what the user chose. Pure. */
export function withChoices({ template }: Choices, { mode, options, allowed }: Chosen): RunRequest {
  const { permissions = {} } = template;
  const remembered = allowed.map((pattern) => ({ pattern, permission: "allow" as const }));
  const effort = efforts.find((one) => one === options.effort);
  return {
    ...template,
    permissions: {
      ...permissions,
      default: modeIn(mode) ?? permissions.default ?? "allow_reads",
      rules: [...(permissions.rules ?? []), ...remembered],
    },
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
  };
}

/** Pure. */
export function modeStateOf({ template }: Choices, { mode }: Chosen): SessionModeState {
  const initial = template.permissions?.default ?? "allow_reads";
  return {
    currentModeId: modeIn(mode) ?? initial,
    availableModes: modes.filter(({ id }) => id !== "deny" || initial === "deny"),
  };
}

/** Pure. */
export function configOptionsOf({ template, models, efforts: offered }: Choices, { options }: Chosen) {
  const listed: SessionConfigOption[] = [];
  const model = options.model ?? template.model;
  if (models.length > 1 && model !== undefined)
    listed.push(selectOf("model", "Model", "model", model, models));
  const first = options.effort ?? template.reasoningEffort;
  if (offered.length > 0)
    listed.push(
      selectOf("effort", "Reasoning", "thought_level", first ?? "default", ["default", ...offered]),
    );
  return listed;
}

/** @throws RequestError for a mode that isn't offered */
export function requireMode(choices: Choices, chosen: Chosen, modeId: string): string {
  const { availableModes } = modeStateOf(choices, chosen);
  if (availableModes.some(({ id }) => id === modeId)) return modeId;
  const named = availableModes.map(({ id }) => id).join(", ");
  throw RequestError.invalidParams(undefined, `There is no mode '${modeId}': it is one of ${named}`);
}

/** The options with a new value of one. @throws RequestError for one that isn't offered */
export function optionsWith(
  choices: Choices,
  chosen: Chosen,
  configId: string,
  value: unknown,
): Chosen["options"] {
  const option = configOptionsOf(choices, chosen).find(({ id }) => id === configId);
  const values = option?.type === "select" ? valuesOf(option.options) : [];
  if (typeof value !== "string" || !values.includes(value)) {
    const which =
      option === undefined
        ? `There is no option '${configId}'`
        : `${configId} must be one of ${values.join(", ")}`;
    throw RequestError.invalidParams(undefined, which);
  }
  const { [configId]: _before, ...others } = chosen.options;
  return value === "default" ? others : { ...others, [configId]: value };
}

function modeIn(mode: string | undefined): Permission | undefined {
  return modes.find(({ id }) => id === mode)?.id;
}

function selectOf(id: string, name: string, category: string, value: string, values: readonly string[]) {
  const options = values.map((one) => ({ value: one, name: one }));
  return { type: "select" as const, id, name, category, currentValue: value, options };
}

function valuesOf(options: (SessionConfigOption & { type: "select" })["options"]): readonly string[] {
  return options.flatMap((option) =>
    "value" in option ? [option.value] : option.options.map(({ value }) => value),
  );
}
