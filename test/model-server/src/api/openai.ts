/** Error shape of both OpenAI APIs. Source: OpenAI API reference, "Error codes". */
export function openaiError(status: number, message: string): unknown {
  const { type, code } = ERRORS[status] ?? {
    type: status < 500 ? "invalid_request_error" : "server_error",
    code: null,
  };
  return { error: { message, type, param: null, code } };
}

const ERRORS: Readonly<Record<number, { type: string; code: string | null }>> = {
  401: { type: "invalid_request_error", code: "invalid_api_key" },
  404: { type: "invalid_request_error", code: "model_not_found" },
  429: { type: "requests", code: "rate_limit_exceeded" },
};

/** Codex reads `models` instead of `data`: empty, so that it uses its own list. */
export function openaiModelList(models: readonly string[]): unknown {
  return {
    object: "list",
    data: models.map((id) => ({
      id,
      object: "model",
      created: 1_767_225_600,
      owned_by: "ambit-model-server",
    })),
    models: [],
  };
}
