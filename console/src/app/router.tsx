import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { Empty, ErrorNote } from "../parts/basic.js";
import { readCompareSearch } from "../screens/compare-search.js";
import { readRunSearch } from "../screens/run/search.js";
import { RunsScreen } from "../screens/runs.js";
import { readRunsSearch } from "../screens/runs-search.js";
import { readStartSearch } from "../screens/start-search.js";
import { readUsageSearch } from "../screens/usage-search.js";
import { Shell } from "./shell.js";

const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Empty title="There is no such page">The menu has all that there are.</Empty>,
});

const routeTree = root.addChildren([
  createRoute({
    getParentRoute: () => root,
    path: "/",
    beforeLoad: () => {
      throw redirect({ to: "/runs" });
    },
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/runs",
    validateSearch: readRunsSearch,
    component: RunsScreen,
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/runs/$runId",
    validateSearch: readRunSearch,
    component: lazyRouteComponent(() => import("../screens/run/run.js"), "RunScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/compare",
    validateSearch: readCompareSearch,
    component: lazyRouteComponent(() => import("../screens/compare.js"), "CompareScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/questions",
    component: lazyRouteComponent(() => import("../screens/questions.js"), "QuestionsScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/start",
    validateSearch: readStartSearch,
    component: lazyRouteComponent(() => import("../screens/start.js"), "StartScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/usage",
    validateSearch: readUsageSearch,
    component: lazyRouteComponent(() => import("../screens/usage.js"), "UsageScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/host",
    component: lazyRouteComponent(() => import("../screens/host.js"), "HostScreen"),
  }),
]);

export const router = createRouter({
  routeTree,
  basepath: "/console",
  defaultPreload: "intent",
  defaultErrorComponent: ({ error, reset }) => <ErrorNote error={error} retry={reset} />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
