import { DecoratorHandler, type Dispatcher } from "undici";
import { NotSent } from "./posting.js";

/**
 * A dispatcher that asks once more when a connection is ready, before the first byte of the request: the process may
 * have been stopped while it connected.
 */
export function checkedLast(dispatcher: Dispatcher, mayAct: () => boolean): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => {
    const inner: Dispatcher.DispatchHandler = new DecoratorHandler(handler);
    return dispatch(options, {
      onRequestStart: (controller, context) => {
        if (mayAct()) inner.onRequestStart?.(controller, context);
        else controller.abort(new NotSent("another process may have the run by now"));
      },
      onRequestUpgrade: (...values) => inner.onRequestUpgrade?.(...values),
      onResponseStart: (...values) => inner.onResponseStart?.(...values),
      onResponseData: (...values) => inner.onResponseData?.(...values),
      onResponseEnd: (...values) => inner.onResponseEnd?.(...values),
      onResponseError: (...values) => inner.onResponseError?.(...values),
    });
  });
}
