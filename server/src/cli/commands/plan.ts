import { type FailedResult, isAmbitError, type PlanResponse } from "@ambit/core";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { failedResult, isServerFault } from "../../failed-result.js";
import { openAmbit } from "../../open.js";
import { MalformedJson } from "../../parse-json.js";
import { planResponse } from "../../plan-response.js";
import { columnsOf } from "../display/layout.js";
import { planReport } from "../display/plan-report.js";
import { Progress } from "../display/progress.js";
import { endsCommand } from "../ends-command.js";
import { exitCodeOf, exitCodes } from "../exit-codes.js";
import { readRequest } from "../read-request.js";

/** `ambit plan`: whether the request could run; with `--json` as `POST /plan` answers. */
export async function plan(
  file: string,
  { json = false, ...overrides }: Overrides & { readonly json?: boolean },
): Promise<number> {
  const progress = new Progress();
  const environment = takeEnvironment(process.env);
  const { runner, registry, evidence, log } = await openAmbit({
    environment,
    overrides,
    logLevel: "warn",
    keepsEvidence: true,
    unhandled: endsCommand,
  });
  const print = (response: PlanResponse | FailedResult) => {
    progress.end();
    const text = json
      ? `${JSON.stringify(response, undefined, 2)}\n`
      : planReport(response, columnsOf(process.stdout));
    process.stdout.write(text);
  };
  try {
    const body = await readRequest(file);
    if (!json) progress.step("probing what this host guarantees");
    print(planResponse(await runner.plan(body)));
    return exitCodes.ok;
  } catch (error) {
    if (!isAmbitError(error) && !(error instanceof MalformedJson)) throw error;
    const result = failedResult(error);
    if (isServerFault(error)) log.error({ error }, "the request could not be planned");
    print(result);
    return exitCodeOf(result.failure);
  } finally {
    progress.end();
    await evidence?.keep(registry);
  }
}
