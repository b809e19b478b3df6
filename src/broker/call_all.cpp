// The part of Router (router.hpp) that is rpc.call_all: one call is asked of all providers of a method, each of
// whom has a relayed call of its own, and their outcomes are gathered. Many, and those of a long request, are asked in
// shares, over several turns.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "broker/call_all_results.hpp"
#include "broker/outgoing.hpp"
#include "broker/request_to_all.hpp"
#include "broker/router.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"
#include "rpc/call_options.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using State = RelayedCall::State;

namespace {

constexpr std::array<std::string_view, 3> kNames{"method", "params", "timeout_ms"};

// Of the caller's share, and of a turn's, for each provider that is asked, besides what its copy of the request takes.
constexpr std::size_t kStepsOfProvider = 4;
// So many outcomes are prepared for in a step.
constexpr std::size_t kExpectedInStep = 4;

constexpr std::size_t kScatterAll = std::numeric_limits<std::size_t>::max();

// What is left of the call's time when the last provider has had its own: for putting together what has come.
constexpr nanoseconds kToAnswer = milliseconds{50};

Error has_one_provider(std::string_view why) {
  return Error{ErrorCode::invalid_params, std::string{message_of(ErrorCode::invalid_params)},
               R"({"reason":)" + to_json(why) + "}"};
}

Error unknown_method(std::string_view near) {
  std::string data;
  if (!near.empty()) data = R"({"did_you_mean":)" + to_json(near) + "}";
  return Error{ErrorCode::method_not_found, std::string{message_of(ErrorCode::method_not_found)}, std::move(data)};
}

}  // namespace

void Router::call_all(Call& call) {
  if (call.message().has(Member::to)) return call.error(errors_.not_there);
  const rpc::ReservedParams<3> params{call.reader(), call.params(), kNames};
  const auto method = params.as<std::string>(0);
  if (!method) params.refuse("method", params.find(0), "string");
  const rpc::RawValue* const given = params.value(1);
  if (given != nullptr && given->kind != ValueKind::array && given->kind != ValueKind::object)
    params.refuse("params", params.find(1), "array or object");
  const rpc::RawValue* const time = params.value(2);
  if (time != nullptr && (time->kind != ValueKind::number || time->text.starts_with('-')))
    params.refuse("timeout_ms", params.find(2), "number from 0");
  std::optional<std::uint32_t> timeout;
  if (time != nullptr) timeout = rpc::milliseconds_of(time->text);
  const Received& message = call.message();
  const Route* const route = methods_.find(*method);
  const Peer& caller = static_cast<Peer&>(*call.broker_peer());
  const Principal* const principal = caller.principal;
  const bool allowed = rpc::may_call(principal, *method);
  if (allowed && own_->find(*method) != nullptr)
    throw has_one_provider("the server itself is the one provider of this method: call it by itself");
  if (route == nullptr || !route->is_provided() || !allowed) {
    if (!call.is_notification()) caller.load().count_undelivered();
    throw unknown_method(methods_.nearest(*method, principal));
  }
  if (route->description.subscription || route->description.unsubscribes)
    throw has_one_provider("a subscription has one provider: call its method by itself");
  if (call.is_notification()) return call.end_result();  // nobody would learn the outcomes
  if (timeout == 0U) throw errors_.timed_out_before;

  CallBounds bounds = call.bounds();
  if (bounds.deadline != kNoDeadline) bounds.deadline -= std::min(kToAnswer, (bounds.deadline - now()) / 2);
  if (timeout) bounds.deadline = std::min(bounds.deadline, now() + milliseconds{*timeout});
  // Each that is asked counts, but one call may ask as many as there are.
  if (caller.load().calls != 0 && caller.load().calls + route->providers().size() > limits_->in_flight) {
    throw message::make({.code = ErrorCode::limit_exceeded,
                         .reason = "too many calls of this connection are in flight",
                         .delivered = "no",
                         .limit = "in_flight"});
  }
  const std::string_view asked_for = given != nullptr ? given->text : std::string_view{};
  const std::string from = from_of(caller);
  const auto request = std::make_shared<RequestToAll>(
      RequestToAll::Parts{.from = from,
                          .method = *method,
                          .params = asked_for,
                          .progress_token = progress_token(asked_for),
                          .timed = bounds.deadline != kNoDeadline && (timeout || message.has(Member::timeout_ms))},
      message);
  const auto results = std::make_shared<CallAllResults>(limits_->max_message_size, caller.shared_load());
  std::list<Scatter> scatter;
  scatter.push_back({.results = results,
                     .request = request,
                     .caller = caller.number,
                     .route = route->name(),
                     .method = *method,
                     .bounds = bounds,
                     .kept = may_keep(caller, request->text())});
  if (scatter.front().kept) request->keep_for(caller.shared_load());
  for (const auto& provider : route->providers()) {
    if (provider->ended) continue;
    scatter.front().providers.push_back(provider->peer->number);
    results->expect(provider->peer->name);
  }
  caller.sink().charge(scatter.front().providers.size() / kExpectedInStep);
  call.on_reply([this, results](const Outcome& outcome) {
    results->end([&](std::uint64_t number) { caller_ended(number, outcome); });
  });
  results->set_sink(call.detach());
  begin_scatter(std::move(scatter));
}

// So many of the providers in this turn as it has time for, and the others in later ones, where several calls take
// turns.
void Router::begin_scatter(std::list<Scatter> scatter) noexcept {
  Scatter& begun = scatter.front();
  if (loop_context_->scheduler == nullptr) return static_cast<void>(scatter_some(begun, kScatterAll));
  scatter_share(begun, scatters_.empty() ? kScatterSteps : kScatterStepsAtOnce);
  if (!begun.is_done()) {
    if (!begun.kept) begun.request = nullptr;
    scatters_.splice(scatters_.end(), scatter);
  }
  scatter_later();
}

void Router::scatter_share(Scatter& scatter, std::size_t steps) noexcept {
  const std::size_t taken = scatter_some(scatter, std::min(steps, scatter_steps_left_));
  scatter_steps_left_ -= std::min(scatter_steps_left_, taken);
}

// Returns what it has taken: the last one may take more than there was left.
std::size_t Router::scatter_some(Scatter& scatter, std::size_t steps) noexcept {
  const auto caller = peers_.find(scatter.caller);
  if (caller == peers_.end()) scatter.results->abandon();
  const std::size_t bytes = scatter.request ? scatter.request->size() : 0;
  const std::size_t each = kStepsOfProvider + cost_of_deliveries(1, bytes);
  std::size_t taken = 0;
  for (; taken < steps && !scatter.is_done(); taken += each) {
    const std::uint32_t index = scatter.asked++;
    caller->second->sink().charge(each);
    try {
      scatter_to(scatter, index, *caller->second);
    } catch (const Error& error) {
      scatter.results->set(index, error);
    } catch (const std::bad_alloc&) {
      scatter.results->set(index, errors_.no_memory);
    }
  }
  return taken;
}

bool Router::Scatter::is_done() const noexcept { return asked == providers.size() || results->has_ended(); }

void Router::scatter_more() noexcept {
  scatter_pending_ = false;
  scatter_steps_left_ = kScatterSteps;
  while (!scatters_.empty() && scatter_steps_left_ != 0) {
    scatter_share(scatters_.front(), kScatterStepsAtOnce);
    if (scatters_.front().is_done()) {
      scatters_.pop_front();
    } else {
      scatters_.splice(scatters_.end(), scatters_, scatters_.begin());
    }
  }
  scatter_later();
}

void Router::scatter_later() noexcept {
  if (scatter_pending_ || (scatters_.empty() && scatter_steps_left_ == kScatterSteps)) return;
  try {
    loop_context_->scheduler->start(scatter_timer_, nanoseconds{0});
    scatter_pending_ = true;
  } catch (const std::bad_alloc&) {
    for (; !scatters_.empty(); scatters_.pop_front()) static_cast<void>(scatter_some(scatters_.front(), kScatterAll));
    scatter_steps_left_ = kScatterSteps;
  }
}

// The provider at that index, unless it has gone since the call came, or provides the method no more.
Provider* Router::provider_at(const Scatter& scatter, std::uint32_t index) const noexcept {
  const auto peer = peers_.find(scatter.providers[index]);
  const Route* const route = methods_.find_registered(scatter.route);
  if (peer == peers_.end() || route == nullptr) return nullptr;
  if (route->description.subscription || route->description.unsubscribes) return nullptr;
  Provider* const provider = route->find(*peer->second);
  return provider == nullptr || provider->ended ? nullptr : provider;
}

// A relayed call of that very provider's, whose outcome goes into the results.
void Router::scatter_to(const Scatter& scatter, std::uint32_t index, const Peer& caller) {
  Provider* const provider = provider_at(scatter, index);
  if (provider == nullptr) throw errors_.not_delivered;
  if (scatter.bounds.deadline != kNoDeadline && now() >= scatter.bounds.deadline) throw errors_.timed_out_before;
  const bool waits = !provider->is_free();
  if (!scatter.request || (waits && !scatter.kept)) throw too_many_bytes();
  if (!waits && !has_budget(*provider, scatter.request->size())) throw provider_holds_too_much();
  if (waits && provider->waiting >= provider->options.queue && !shed_waiting_call(*provider, caller))
    throw queue_is_full();
  rpc::MethodCounts& counts = provider->route->counts();
  auto extras = std::make_unique<RelayExtras>();
  extras->to_all = scatter.request;
  extras->asked_by = &caller;
  extras->asker = caller.number;
  extras->call_all = {scatter.results, index};
  const std::optional<SlotNumber> slot = calls_.take("0");
  if (!slot) throw too_many_calls();
  RelayedCall& call = calls_[*slot];
  call.began = scatter.bounds.began;
  call.extras = std::move(extras);
  call.state = State::waiting;
  call.addressed = true;
  call.deadline = scatter.bounds.deadline;
  if (call.deadline != kNoDeadline) {
    deadlines_.add(*slot);
    call.timed = true;
    try {
      watch(*slot);
    } catch (...) {
      deadlines_.remove(*slot);
      calls_.give_back(*slot);
      throw;
    }
  }
  ++counts.calls;
  scatter.results->set_call(index, calls_.number_of(*slot));
  if (!taps_.empty()) [[unlikely]]
    tap_call(*slot, *provider,
             {.caller = caller, .method = scatter.method, .params = {.text = scatter.request->params()}});
  hand_to(*provider, *slot);
}

// A call in no list of its provider's goes there. Throws std::bad_alloc.
void Router::send_to_all(SlotNumber slot) {
  const RelayedCall& call = calls_[slot];
  const RequestToAll& request = *call.extras->to_all;
  const milliseconds left{call.deadline == kNoDeadline ? 0 : milliseconds_left(call)};
  const Digits id{calls_.number_of(slot)};
  append_message(call.provider->peer->sink(), [&](Buffer& out) { request.append_to(out, id.view(), left); });
  sent(slot);
  calls_[slot].extras->to_all = nullptr;
}

}  // namespace wirecall::broker
