/** The variables that model providers' own tools read. */
interface ProviderVariables {
  readonly provider: string;
  readonly key: string;
  readonly baseUrl?: string;
}

const providers: readonly ProviderVariables[] = [
  { provider: "anthropic", key: "ANTHROPIC_API_KEY", baseUrl: "ANTHROPIC_BASE_URL" },
  { provider: "google", key: "GEMINI_API_KEY", baseUrl: "GOOGLE_GEMINI_BASE_URL" },
  { provider: "openai", key: "OPENAI_API_KEY", baseUrl: "OPENAI_BASE_URL" },
  { provider: "mistral", key: "MISTRAL_API_KEY" },
  { provider: "groq", key: "GROQ_API_KEY" },
  { provider: "openrouter", key: "OPENROUTER_API_KEY" },
];

/** The provider of agents that have one of their own. */
const ofAgents: Readonly<Record<string, string>> = { claude: "anthropic", codex: "openai", gemini: "google" };

/** The variables of which one has the model's key, as far as the agent and the model say. Pure. */
export function keyVariables(agent: string | undefined, model: string | undefined): readonly string[] {
  const wanted = providerOf(agent, model);
  const chosen = providers.filter(({ provider }) => provider === wanted);
  return (chosen.length > 0 ? chosen : providers).map(({ key }) => key);
}

function providerOf(agent: string | undefined, model: string | undefined): string | undefined {
  const named = model?.includes("/") === true ? model.slice(0, model.indexOf("/")) : undefined;
  return named ?? ofAgents[agent ?? ""];
}

export interface ModelConnectionInput {
  readonly provider: string;
  readonly endpoint?: { readonly baseUrl: string };
  readonly credentials: readonly {
    readonly binding: { readonly kind: "environment"; readonly name: string };
    readonly value: string | undefined;
  }[];
}

/**
 * How the agent reaches its model, from the user's own variables: the provider that `model` names (`provider/model`), else the
 * agent's own, else the only one with a key. Undefined where there is no key: the agent says what it lacks. Pure.
 */
export function modelConnectionFrom(
  environment: Readonly<Record<string, string | undefined>>,
  agent: string | undefined,
  model: string | undefined,
): ModelConnectionInput | undefined {
  const withKeys = providers.filter(({ key }) => (environment[key] ?? "") !== "");
  const wanted = providerOf(agent, model);
  const chosen =
    wanted === undefined
      ? withKeys.length === 1
        ? withKeys[0]
        : undefined
      : withKeys.find(({ provider }) => provider === wanted);
  if (chosen === undefined || agent === "demo") return undefined;
  const { provider, key, baseUrl } = chosen;
  const url = baseUrl === undefined ? undefined : environment[baseUrl];
  return {
    provider,
    ...(url === undefined || url === "" ? {} : { endpoint: { baseUrl: url } }),
    credentials: [{ binding: { kind: "environment", name: key }, value: environment[key] }],
  };
}
