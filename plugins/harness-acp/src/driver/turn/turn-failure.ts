import { HarnessFailed, ModelFailed, type Usage } from "@ambit/core/plugin";
import type { Profile } from "../../profiles/profile.js";
import type { JsonRecord } from "../json-reading.js";
import { modelFailure } from "../wire/failures.js";
import type { UpdateReader } from "./update-reader.js";

/** Why a turn counts as failed although the agent ended it normally; undefined if it doesn't. */
export function turnFailure(
  profile: Pick<Profile, "title" | "failure">,
  response: JsonRecord,
  reader: Pick<UpdateReader, "failure" | "failureIn" | "idle">,
  tokens: Usage | undefined,
): ModelFailed | undefined {
  const { title } = profile;
  const failure = profile.failure?.(response) ?? reader.failure ?? reader.failureIn(response._meta);
  if (failure !== undefined) {
    return modelFailure(title, failure);
  }
  if (response.stopReason !== "end_turn" || !reader.idle || tokens !== undefined) return undefined;
  return new ModelFailed(
    `${title} ended its turn without an answer and without using its model: see its credential, its model's name and its quota.`,
    { retryable: true },
  );
}

/** No agent reports that it couldn't reach a tool server: it only works without those tools. */
export function withoutTools(title: string): HarnessFailed {
  return new HarnessFailed(
    `${title} never asked for the run's tools: its turn ran without them, and so counts as failed.`,
  );
}
