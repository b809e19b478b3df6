// Of WorkQueues: the methods rpc.queue.…, by which peers push jobs and look at them (work_queues.hpp).
#include "broker/durable_answers.hpp"
#include "broker/outgoing.hpp"
#include "broker/work_queues.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

using durable::Job;
using rpc::ReservedParams;

constexpr std::uint32_t kPeekDefault = 20;
constexpr std::uint32_t kPeekMax = 1000;
constexpr std::uint64_t kDelayMaxMs = 366ULL * 86'400'000;
constexpr std::uint32_t kTimeoutMaxMs = 7U * 86'400'000U;

struct PushedRow {
  std::uint64_t id;
  std::optional<bool> duplicate;
};
struct JobRow {
  std::uint64_t id;
  std::string_view method;
  std::string_view state;
  std::uint32_t deliveries;
  std::int64_t at_ms;
  std::optional<Raw> params;
  std::optional<Raw> result;
  std::optional<Raw> error;
};
struct QueueRow {
  std::string_view method;
  std::uint64_t waiting;
  std::uint64_t running;
  std::uint64_t done;
  std::uint64_t dead;
  std::uint64_t bytes;
};

namespace {

constexpr std::array<std::pair<std::string_view, Job::State>, 4> kStates{{{"waiting", Job::State::waiting},
                                                                          {"running", Job::State::running},
                                                                          {"done", Job::State::done},
                                                                          {"dead", Job::State::dead}}};

std::string_view word_of(Job::State state) noexcept {
  return std::ranges::find(kStates, state, &std::pair<std::string_view, Job::State>::second)->first;
}

template <std::size_t N>
std::string method_of(const ReservedParams<N>& params, std::string_view name, std::size_t at) {
  std::optional<std::string> method = params.template as<std::string>(at);
  if (!method || !is_name(*method) || is_reserved(*method))
    params.refuse(name, params.find(at), "name of a method, which is none of rpc. or $/");
  return *std::move(method);
}

template <std::size_t N>
std::uint64_t id_of(const ReservedParams<N>& params) {
  const auto id = params.template as<std::uint64_t>(0);
  if (!id) params.refuse("id", params.find(0), "id of a job");
  return *id;
}

// What a job holds is for whoever has pushed it.
bool may_see(const Peer& peer, const Job& job) {
  return rpc::may_call(peer.principal, job.method) && (sees_all(peer) || job.principal == account_of(peer));
}

JobRow row_of(const Job& job, bool with_params) {
  JobRow row{.id = job.id,
             .method = job.method,
             .state = word_of(job.state),
             .deliveries = job.deliveries,
             .at_ms = job.at_ms,
             .params = std::nullopt,
             .result = std::nullopt,
             .error = std::nullopt};
  if (with_params && !job.params.empty()) row.params.emplace(job.params);
  if (!job.result.empty()) (job.state == Job::State::done ? row.result : row.error).emplace(job.result);
  return row;
}

}  // namespace

void WorkQueues::push(Call& call) {
  constexpr std::array<std::string_view, 6> kNames{"method",   "params",      "msg_id",
                                                   "delay_ms", "max_deliver", "timeout_ms"};
  const ReservedParams<6> params{call.reader(), call.params(), kNames};
  const Peer& caller = caller_of(call);
  if (caller.sink().capabilities().datagrams)
    throw Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})");
  durable::NewJob job{.method = method_of(params, "method", 0), .params = {}, .msg_id = msg_id_of(caller, params, 2)};
  job.delay_ms = params.as<std::uint64_t>(3).value_or(0);
  if (job.delay_ms > kDelayMaxMs) params.refuse("delay_ms", params.find(3), "number of at most 366 days");
  job.max_deliver = number_of(params, "max_deliver", 4, job.max_deliver, 0, 1'000'000);
  job.timeout_ms = number_of(params, "timeout_ms", 5, job.timeout_ms, 1, kTimeoutMaxMs);
  job.params = kept_params(call.reader(), params, 1);
  if (!rpc::may_call(caller.principal, job.method)) throw forbidden();
  if (!topics_->fits_message(job.method, job.params))
    throw message::too_large("the job is larger than a message may be");
  job.principal = account_of(caller);
  durable::Store& store = require_store();
  ReplySink sink = call.detach();
  sink.keeps(job.method.size() + job.params.size());
  caller.sink().charge(job.params.size() / rpc::Share::kBytesOfStep + 4);
  std::string method = job.method;
  store.push(std::move(job), [this, method = std::move(method),
                              sink = std::move(sink)](const durable::Outcome<durable::Pushed>& outcome) mutable {
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      PushedRow row{.id = outcome->id, .duplicate = std::nullopt};
      if (outcome->duplicate) row.duplicate = true;
      answer(sink, row);
      if (outcome->duplicate) return;
      queue_of(method);
      pump(method);
    });
  });
}

void WorkQueues::result(Call& call) {
  constexpr std::array<std::string_view, 1> kNames{"id"};
  const ReservedParams<1> params{call.reader(), call.params(), kNames};
  const std::uint64_t id = id_of(params);
  const Peer& caller = caller_of(call);
  caller.sink().charge(kStepsOfRead);
  require_store().find_job(
      id, reader_of(caller),
      [this, asker = caller.number, sink = call.detach()](const durable::Outcome<durable::Job>& outcome) mutable {
        if_memory_allows([&] {
          if (!outcome) return sink.error(error_of(outcome.error()));
          const Peer* const peer = context_->peers.find(asker);
          if (peer == nullptr) return;
          if (!may_see(*peer, *outcome)) return sink.error(forbidden());
          answer(sink, row_of(*outcome, false));
        });
      });
}

void WorkQueues::list(Call& call) {
  const ReservedParams<0> params{call.reader(), call.params(), std::array<std::string_view, 0>{}};
  const Peer& caller = caller_of(call);
  caller.sink().charge(kStepsOfRead);
  require_store().list_queues(
      reader_of(caller), [this, asker = caller.number, sink = call.detach()](
                             const durable::Outcome<std::vector<durable::QueueCounts>>& outcome) mutable {
        if_memory_allows([&] {
          if (!outcome) return sink.error(error_of(outcome.error()));
          const Peer* const peer = context_->peers.find(asker);
          if (peer == nullptr) return;
          std::vector<QueueRow> rows;
          for (const durable::QueueCounts& one : *outcome) {
            if (rpc::may_call(peer->principal, one.method))
              rows.push_back({one.method, one.waiting, one.running, one.done, one.dead, one.bytes});
          }
          charge_rows(peer, outcome->size());
          answer(sink, rows);
        });
      });
}

void WorkQueues::peek(Call& call) {
  constexpr std::array<std::string_view, 4> kNames{"method", "state", "after", "count"};
  const ReservedParams<4> params{call.reader(), call.params(), kNames};
  durable::Peek peek{.method = method_of(params, "method", 0),
                     .state = Job::State::waiting,
                     .after = params.as<std::uint64_t>(2).value_or(0),
                     .count = number_of(params, "count", 3, kPeekDefault, 1, kPeekMax),
                     .bytes = context_->limits.max_message_size / 4,
                     .asker = reader_of(caller_of(call))};
  if (const auto word = params.as<std::string>(1)) {
    const auto found = std::ranges::find(kStates, *word, &std::pair<std::string_view, Job::State>::first);
    if (found == kStates.end()) params.refuse("state", params.find(1), "one of waiting, running, done, dead");
    peek.state = found->second;
  }
  const Peer& caller = caller_of(call);
  if (!rpc::may_call(caller.principal, peek.method)) throw forbidden();
  if (!sees_all(caller)) peek.principal = account_of(caller);
  caller.sink().charge(kStepsOfRead);
  require_store().peek(std::move(peek), [this, number = caller.number, sink = call.detach()](
                                            const durable::Outcome<std::vector<durable::Job>>& outcome) mutable {
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      std::vector<JobRow> rows;
      std::size_t bytes = 0;
      for (const Job& job : *outcome) {
        bytes += job.params.size() + job.result.size();
        rows.push_back(row_of(job, true));
      }
      charge_rows(context_->peers.find(number), rows.size(), bytes);
      answer(sink, rows);
    });
  });
}

void WorkQueues::retry(Call& call) { change(call, &durable::Store::retry_job); }
void WorkQueues::drop(Call& call) { change(call, &durable::Store::drop_job); }

void WorkQueues::change(Call& call, void (durable::Store::*act)(std::uint64_t id, durable::Then<durable::Done> then)) {
  constexpr std::array<std::string_view, 1> kNames{"id"};
  const ReservedParams<1> params{call.reader(), call.params(), kNames};
  const std::uint64_t id = id_of(params);
  const Peer& caller = caller_of(call);
  caller.sink().charge(kStepsOfRead);
  require_store().find_job(id, reader_of(caller),
                           [this, id, act, asker = caller.number,
                            sink = call.detach()](const durable::Outcome<durable::Job>& found) mutable {
                             if_memory_allows([&] {
                               if (!found) return sink.error(error_of(found.error()));
                               const Peer* const peer = context_->peers.find(asker);
                               if (peer == nullptr) return;
                               if (!may_see(*peer, *found)) return sink.error(forbidden());
                               (store_->*act)(id, [this, method = found->method, sink = std::move(sink)](
                                                      const durable::Outcome<durable::Done>& outcome) mutable {
                                 if_memory_allows([&] {
                                   if (!outcome) return sink.error(error_of(outcome.error()));
                                   answer(sink, true);
                                   queue_of(method);
                                   pump(method);
                                   free_if_empty(method);
                                 });
                               });
                             });
                           });
}

}  // namespace wirecall::broker
