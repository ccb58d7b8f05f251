import type { Store } from "@ambit/core/plugin";
import type { Database } from "./database.js";
import { Deliveries } from "./deliveries.js";
import { Runs } from "./runs.js";
import { Shared } from "./shared.js";

/** A store over a database whose schema is up to date. */
export function sqlStore(database: Database): Store {
  const runs = new Runs(database);
  const shared = new Shared(database);
  const deliveries = new Deliveries(database);
  return {
    create: (run) => runs.create(run),
    claim: (id, replica) => runs.claim(id, replica),
    nextQueued: (limit, except) => runs.nextQueued(limit, except),
    append: (group) => runs.append(group),
    finish: (id, fence, end) => runs.finish(id, fence, end),
    get: (id) => runs.get(id),
    list: (query) => runs.list(query),
    heads: (ids) => runs.heads(ids),
    read: (id, after, maxCharacters) => runs.read(id, after, maxCharacters),
    requestCancel: (id) => runs.requestCancel(id),
    delete: (id) => runs.delete(id),
    retain: (retention) => runs.retain(retention),
    renew: (replica, address, leaseMs) => shared.renew(replica, address, leaseMs),
    supersede: (prefix, replica) => shared.supersede(prefix, replica),
    leave: (replica) => shared.leave(replica),
    abandoned: () => shared.abandoned(),
    takeOver: (id, fence, replica) => shared.takeOver(id, fence, replica),
    interactions: (query) => shared.interactions(query),
    answer: (id, answer) => shared.answer(id, answer),
    useAnswer: (id) => shared.useAnswer(id),
    expireInteractions: (maxAgeMs) => shared.expireInteractions(maxAgeMs),
    holdSession: (place) => shared.holdSession(place),
    releaseSession: (place) => shared.releaseSession(place),
    sessions: (query) => shared.sessions(query),
    enqueueDelivery: (delivery) => deliveries.enqueue(delivery),
    takeDeliveries: (limit, reserveMs) => deliveries.take(limit, reserveMs),
    settleDelivery: (id, outcome) => deliveries.settle(id, outcome),
    deliveries: (query) => deliveries.list(query),
    close: () => database.close(),
  };
}
