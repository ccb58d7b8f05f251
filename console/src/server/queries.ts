import { AmbitError, type Schema } from "@ambit/client";
import { keepPreviousData, QueryClient, queryOptions } from "@tanstack/react-query";
import { client, clientOf, type RunPlace } from "./client.js";

/** Milliseconds between two looks at what changes. */
export const lookMs = 2_000;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => error instanceof AmbitError && error.retryable && count < 2,
      retryDelay: 500,
      refetchOnWindowFocus: true,
    },
  },
});

/** An ended run never changes. */
export const runInfo = ({ runId, projectId }: RunPlace, hasEnded: boolean) =>
  queryOptions({
    queryKey: ["run", projectId, runId, hasEnded],
    queryFn: ({ signal }) => client.runInfo(runId, { projectId, signal }),
    staleTime: hasEnded ? Number.POSITIVE_INFINITY : 0,
  });

export const openQuestions = queryOptions({
  queryKey: ["questions", "open"],
  queryFn: async ({ signal }) =>
    (await client.interactions({ state: "open", limit: 1_000, signal })).interactions,
  refetchInterval: lookMs,
  placeholderData: keepPreviousData,
});

export const actors = queryOptions({
  queryKey: ["plugins"],
  queryFn: async ({ signal }) => (await client.plugins({ signal })).actors,
  staleTime: 10_000,
});

export type Tally = Schema<"UsageResponse">["total"];
export type UsedQuotas = Schema<"QuotasResponse">["quotas"][number];
export type UsedQuota = NonNullable<UsedQuotas["sessions"]>;

export const usage = (query: NonNullable<Parameters<typeof client.usage>[0]>) =>
  queryOptions({
    queryKey: ["usage", query],
    queryFn: ({ signal }) => client.usage({ ...query, signal }),
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
  });

export const quotas = queryOptions({
  queryKey: ["quotas"],
  queryFn: async ({ signal }) => (await client.quotas({ signal })).quotas,
  refetchInterval: 5_000,
});

export type Host = Schema<"HostResponse">;

export const host = queryOptions({
  queryKey: ["host"],
  queryFn: ({ signal }) => client.host({ signal }),
  staleTime: 10_000,
});

export const patch = (place: RunPlace) =>
  queryOptions({
    queryKey: ["patch", place.projectId, place.runId],
    queryFn: ({ signal }) => clientOf(place).patch(place.runId, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** What a run was begun with, without its secrets. */
export const runRequest = (place: RunPlace) =>
  queryOptions({
    queryKey: ["request", place.projectId, place.runId],
    queryFn: ({ signal }) => clientOf(place).runRequest(place.runId, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
