export type {
  EventChunk,
  EventGroup,
  InteractionQuery,
  InteractionState,
  NewInteraction,
  NewRun,
  OfProject,
  RunEnd,
  RunHead,
  RunQuery,
  StoredInteraction,
  StoredRun,
  StoredRunState,
  Written,
} from "./run.js";
export type { Delivery, NewDelivery, SessionHold, SessionPlace, StoredSession } from "./shared.js";
export type { ArrivedAnswer, HeldRun, Renewal, Retention, Store, StoreBackend } from "./store.js";
