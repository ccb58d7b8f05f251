import type { ReadBody } from "./read-body.js";

/**
 * The body of a streamed Chat Completions request with the stream's usage enabled: otherwise the provider sends none.
 * Other members of `stream_options` are removed. Pure.
 */
export function askingForUsage({ value, streamed }: ReadBody): ReadBody["value"] {
  if (!streamed) return value;
  const { stream_options: options } = value;
  const asks =
    typeof options === "object" &&
    options !== null &&
    "include_usage" in options &&
    options.include_usage === true;
  return asks ? value : { ...value, stream_options: { include_usage: true } };
}
