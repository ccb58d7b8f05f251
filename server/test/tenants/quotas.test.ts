import { AtCapacity } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { Quotas } from "../../src/tenants/quotas.js";
import { tenantSchema } from "../../src/tenants/schema.js";

const token = `sha256:${"0".repeat(64)}`;
const tenant = (limits: object, project = "one") => tenantSchema.parse({ token, project, limits });

function clock(start = 0) {
  const time = { now: start };
  return { time, quotas: new Quotas(() => time.now) };
}

/** Milliseconds until the refused run may succeed; undefined when it may begin. */
function refusal(take: () => unknown): number | undefined {
  try {
    take();
    return undefined;
  } catch (error) {
    if (error instanceof AtCapacity) return error.retryAfterMs;
    throw error;
  }
}

describe("a project's quotas", () => {
  it("limit simultaneous runs", () => {
    const { quotas } = clock();
    const one = tenant({ concurrentRuns: 1 });
    const place = quotas.take(one, false, 0);
    expect(refusal(() => quotas.take(one, false, 0))).toBe(1_000);
    // Another project's are its own.
    expect(refusal(() => quotas.take(tenant({ concurrentRuns: 1 }, "two"), false, 0))).toBeUndefined();
    place.release();
    place.release();
    expect(refusal(() => quotas.take(one, false, 0))).toBeUndefined();
  });

  it("limit the runs started within any minute", () => {
    const { quotas, time } = clock(1_000_000);
    const two = tenant({ runsPerMinute: 2 });
    quotas.take(two, false, 0).release();
    time.now += 20_000;
    quotas.take(two, false, 0).release();
    expect(refusal(() => quotas.take(two, false, 0))).toBe(40_000);
    time.now += 40_000;
    expect(refusal(() => quotas.take(two, false, 0))).toBeUndefined();
    expect(refusal(() => quotas.take(two, false, 0))).toBe(20_000);
  });

  it("limit open sessions, but not runs in open ones", () => {
    const { quotas } = clock();
    const limited = tenant({ sessions: 2 });
    expect(refusal(() => quotas.take(limited, true, 1))).toBeUndefined();
    expect(refusal(() => quotas.take(limited, true, 2))).toBe(1_000);
    expect(refusal(() => quotas.take(limited, false, 2))).toBeUndefined();
  });

  it("limit the dollars spent in a day (UTC)", () => {
    const { quotas, time } = clock(Date.UTC(2026, 10, 22, 23));
    const limited = tenant({ usdPerDay: 1 });
    quotas.take(limited, false, 0).release(0.6);
    quotas.take(limited, false, 0).release(0.6);
    expect(refusal(() => quotas.take(limited, false, 0))).toBe(3_600_000);
    time.now += 3_600_000;
    expect(refusal(() => quotas.take(limited, false, 0))).toBeUndefined();
  });
});
