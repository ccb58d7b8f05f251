import type { ToolExecutor, ToolOutcome } from "@ambit/core/plugin";

/**
 * Tools that the user's browser fulfils. Nothing is executed here: the call is parked, the run puts it to the
 * user, and the answer comes back through the run. Site `caller`: the plan lists it as outside, never refuses it.
 */
export class ClientExecutor implements ToolExecutor {
  readonly name = "client";
  readonly kind = "client";
  readonly site = "caller";
  readonly claims = [];

  touches(): [] {
    return [];
  }

  covers(): [] {
    return [];
  }

  issues(): [] {
    return [];
  }

  /** Claims nothing, so there is nothing to see on this host. */
  probe(): Promise<[]> {
    return Promise.resolve([]);
  }

  execute(): Promise<ToolOutcome> {
    return Promise.resolve({ status: "parked", interaction: "client_tool" });
  }
}
