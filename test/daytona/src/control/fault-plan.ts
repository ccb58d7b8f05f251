import { ApiError } from "../http/api-error.js";
import type { Faults, RequestFault } from "../interface.js";

export type Fate = Parameters<Faults["nextSandbox"]>[0];

/** Faults that are planned and not used yet. */
export class FaultPlan {
  #faults: { readonly fault: RequestFault; left: number }[] = [];
  #fates: Fate[] = [];
  keyIsExpired = false;

  answer(fault: RequestFault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  nextSandbox(fate: Fate): void {
    this.#fates.push(fate);
  }

  clear(): void {
    this.#faults = [];
    this.#fates = [];
    this.keyIsExpired = false;
  }

  /** The fault for this request, which uses it up. */
  take(method: string, url: URL): RequestFault | undefined {
    const entry = this.#faults.find(({ fault, left }) => left > 0 && matches(fault, method, url));
    if (entry) entry.left -= 1;
    return entry?.fault;
  }

  takeFate(): Fate | undefined {
    return this.#fates.shift();
  }
}

function matches({ method, path }: RequestFault, actual: string, url: URL): boolean {
  if (method !== undefined && method !== actual) return false;
  return typeof path === "string" ? path === url.pathname : path.test(url.pathname + url.search);
}

const throttled = {
  "X-RateLimit-Limit-sandbox-create": "300",
  "X-RateLimit-Remaining-sandbox-create": "0",
  "X-RateLimit-Reset-sandbox-create": "1",
  "Retry-After-sandbox-create": "1",
};

export function faultError({ status, message, code, headers }: RequestFault): ApiError {
  const number = status === "cut" ? 500 : status;
  const isThrottled = number === 429;
  const text = message ?? (isThrottled ? "ThrottlerException: Too Many Requests" : undefined);
  return new ApiError(number, text, code, headers ?? (isThrottled ? throttled : {}));
}
