import { isAmbitError } from "@ambit/core";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { failedResult } from "../../failed-result.js";
import { openAmbit } from "../../open.js";
import { MalformedJson } from "../../parse-json.js";
import { planResponse } from "../../plan-response.js";
import { endsCommand } from "../ends-command.js";
import { exitCodeOf, exitCodes } from "../exit-codes.js";
import { readRequest } from "../read-request.js";

/** `ambit plan`: whether the request could run, as in `POST /plan`. */
export async function plan(file: string, overrides: Overrides): Promise<number> {
  const environment = takeEnvironment(process.env);
  const { runner, registry, evidence } = await openAmbit({
    environment,
    overrides,
    logLevel: "warn",
    unhandled: endsCommand,
    keepsEvidence: true,
  });
  const print = (response: unknown) => process.stdout.write(`${JSON.stringify(response, undefined, 2)}\n`);
  try {
    const body = await readRequest(file);
    print(planResponse(await runner.plan(body)));
    return exitCodes.ok;
  } catch (error) {
    if (!isAmbitError(error) && !(error instanceof MalformedJson)) throw error;
    const result = failedResult(error);
    print(result);
    return exitCodeOf(result.failure);
  } finally {
    await evidence?.keep(registry);
  }
}
