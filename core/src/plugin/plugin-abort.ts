import { setMaxListeners } from "node:events";

/** Far more than one run has under way. 0, which would be none at all, breaks clients that raise a limit they find. */
const mostListeners = 10_000;

/** What aborts work of a plugin. Its signal may have many listeners, one a call under way, which are no leak. */
export function newPluginAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(mostListeners, controller.signal);
  return controller;
}
