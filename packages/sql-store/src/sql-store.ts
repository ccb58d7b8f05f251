import type { Store } from "@ambit/durable/store";
import type { Database } from "./database.js";
import { Queue, Quotas } from "./runs/quotas.js";
import { RunRetention } from "./runs/retention.js";
import { Runs } from "./runs/runs.js";
import { TallyRows } from "./runs/tallies.js";
import { ClaimRows } from "./shared/claims.js";
import { DeliveryRows } from "./shared/deliveries.js";
import { ReplicaRows } from "./shared/replicas.js";
import { SessionRows, SessionUses } from "./shared/sessions.js";

/** A store over a database whose schema is up to date. */
export function sqlStore(database: Database): Store {
  const runs = new Runs(database);
  const shared = new ReplicaRows(database);
  const claims = new ClaimRows(database);
  const quotas = new Quotas(database);
  const tallies = new TallyRows(database);
  const queue = new Queue(database);
  const sessions = new SessionRows(database);
  const uses = new SessionUses(database);
  const deliveries = new DeliveryRows(database);
  const retention = new RunRetention(database);
  return {
    create: (run) => runs.create(run),
    createWithin: (run, quota) => quotas.createWithin(run, quota),
    createQueued: (run, limits) => queue.create(run, limits),
    usage: (projects) => quotas.usage(projects),
    tallies: (query) => tallies.read(query),
    claim: (id, replica) => runs.claim(id, replica),
    keepRecovery: (id, fence, recovery) => runs.keepRecovery(id, fence, recovery),
    nextQueued: (replica, limit, except) => runs.nextQueued(replica, limit, except),
    append: (group) => runs.append(group),
    finish: (id, fence, end) => runs.finish(id, fence, end),
    get: (id) => runs.get(id),
    list: (query) => runs.list(query),
    heads: (ids) => runs.heads(ids),
    read: (id, after, maxCharacters) => runs.read(id, after, maxCharacters),
    requestCancel: (id) => runs.requestCancel(id),
    delete: (id) => retention.delete(id),
    retain: (limits) => retention.retain(limits),
    join: (replica, address, leaseMs, keys) => shared.join(replica, address, leaseMs, keys),
    renew: (replica, address, leaseMs) => shared.renew(replica, address, leaseMs),
    drain: (replica) => shared.drain(replica),
    supersede: (prefix, replica) => shared.supersede(prefix, replica),
    leave: (replica) => shared.leave(replica),
    abandoned: () => shared.abandoned(),
    takeOver: (id, fence, replica) => shared.takeOver(id, fence, replica),
    interactions: (query) => shared.interactions(query),
    answer: (id, answer, maxCharacters) => shared.answer(id, answer, maxCharacters),
    nameAnswerer: (id, answerer) => shared.nameAnswerer(id, answerer),
    claimAnswer: (id, run) => claims.claim(id, run),
    settleAnswer: (id, run, settlement) => claims.settle(id, run, settlement),
    dropAnswer: (id) => claims.drop(id),
    expiring: (maxAgeMs, maxCharacters) => shared.expiring(maxAgeMs, maxCharacters),
    expire: (question, expiry) => shared.expire(question, expiry),
    holdSession: (place, maxOpen) => sessions.hold(place, maxOpen),
    keepSession: (...kept) => sessions.keep(...kept),
    releaseSession: (place, handover) => sessions.release(place, handover),
    endSession: (of) => sessions.end(of),
    keepUse: (of, use) => uses.keep(of, use),
    sessions: (query) => sessions.list(query),
    takeDeliveries: (limit, reserveMs, except) => deliveries.take(limit, reserveMs, except),
    settleDelivery: (id, attempt, outcome) => deliveries.settle(id, attempt, outcome),
    redeliver: (id, project) => deliveries.again(id, project),
    deliveries: (query) => deliveries.list(query),
    backlog: (project) => deliveries.backlog(project),
    close: () => database.close(),
  };
}
