// The part of Exchange (exchange.hpp) that is rpc.call_all: one call is asked of all providers of a method, each of
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

#include "broker/exchange.hpp"
#include "broker/gathering.hpp"
#include "broker/outgoing.hpp"
#include "broker/request_to_all.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"
#include "rpc/reserved_params.hpp"
#include "rpc/terms.hpp"
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

constexpr std::size_t kAskAll = std::numeric_limits<std::size_t>::max();

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

void Exchange::call_all(Call& call) {
  if (call.message().has(Member::to)) return call.error(errors_.not_there);
  const rpc::ReservedParams<3> params{call.reader(), call.params(), kNames};
  const auto method = params.as<std::string>(0);
  if (!method) params.refuse("method", params.find(0), "string");
  const rpc::Sent* const given = params.value(1);
  if (given != nullptr && given->kind != ValueKind::array && given->kind != ValueKind::object)
    params.refuse("params", params.find(1), "array or object");
  const rpc::Sent* const time = params.value(2);
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
  const auto gathering = std::make_shared<Gathering>(limits_->max_message_size, caller.shared_load());
  std::list<Asking> asking;
  asking.push_back({.gathering = gathering,
                    .request = request,
                    .caller = caller.number,
                    .route = route->name(),
                    .method = *method,
                    .bounds = bounds,
                    .kept = may_keep(caller, request->text())});
  if (asking.front().kept) request->keep_for(caller.shared_load());
  for (const auto& provider : route->providers()) {
    if (provider->ended) continue;
    asking.front().providers.push_back(provider->peer->number);
    gathering->expect(provider->peer->name);
  }
  caller.outlet().charge(asking.front().providers.size() / kExpectedInStep);
  call.on_reply([this, gathering](const Outcome& outcome) {
    gathering->end([&](std::uint64_t number) { caller_ended(number, outcome); });
  });
  gathering->answer_by(call.detach());
  begin_asking(std::move(asking));
}

// So many of the providers in this turn as it has time for, and the others in later ones, where several calls take
// turns.
void Exchange::begin_asking(std::list<Asking> asking) noexcept {
  Asking& begun = asking.front();
  if (workspace_->scheduler == nullptr) return static_cast<void>(ask_some(begun, kAskAll));
  ask_share(begun, askings_.empty() ? kAskingSteps : kAskingStepsAtOnce);
  if (!begun.is_done()) {
    if (!begun.kept) begun.request = nullptr;
    askings_.splice(askings_.end(), asking);
  }
  ask_later();
}

void Exchange::ask_share(Asking& asking, std::size_t steps) noexcept {
  const std::size_t taken = ask_some(asking, std::min(steps, asking_steps_left_));
  asking_steps_left_ -= std::min(asking_steps_left_, taken);
}

// Returns what it has taken: the last one may take more than there was left.
std::size_t Exchange::ask_some(Asking& asking, std::size_t steps) noexcept {
  const auto caller = peers_.find(asking.caller);
  if (caller == peers_.end()) asking.gathering->abandon();
  const std::size_t bytes = asking.request ? asking.request->size() : 0;
  const std::size_t each = kStepsOfProvider + cost_of_deliveries(1, bytes);
  std::size_t taken = 0;
  for (; taken < steps && !asking.is_done(); taken += each) {
    const std::uint32_t place = asking.asked++;
    caller->second->outlet().charge(each);
    try {
      ask_for(asking, place, *caller->second);
    } catch (const Error& error) {
      asking.gathering->put(place, error);
    } catch (const std::bad_alloc&) {
      asking.gathering->put(place, errors_.no_memory);
    }
  }
  return taken;
}

bool Exchange::Asking::is_done() const noexcept { return asked == providers.size() || gathering->has_ended(); }

void Exchange::ask_more() noexcept {
  asks_ = false;
  asking_steps_left_ = kAskingSteps;
  while (!askings_.empty() && asking_steps_left_ != 0) {
    ask_share(askings_.front(), kAskingStepsAtOnce);
    if (askings_.front().is_done()) {
      askings_.pop_front();
    } else {
      askings_.splice(askings_.end(), askings_, askings_.begin());
    }
  }
  ask_later();
}

void Exchange::ask_later() noexcept {
  if (asks_ || (askings_.empty() && asking_steps_left_ == kAskingSteps)) return;
  try {
    workspace_->scheduler->start(asking_, nanoseconds{0});
    asks_ = true;
  } catch (const std::bad_alloc&) {
    for (; !askings_.empty(); askings_.pop_front()) static_cast<void>(ask_some(askings_.front(), kAskAll));
    asking_steps_left_ = kAskingSteps;
  }
}

// The provider in that place, unless it has gone since the call came, or provides the method no more.
Provider* Exchange::provider_at(const Asking& asking, std::uint32_t place) const noexcept {
  const auto peer = peers_.find(asking.providers[place]);
  const Route* const route = methods_.find_registered(asking.route);
  if (peer == peers_.end() || route == nullptr) return nullptr;
  if (route->description.subscription || route->description.unsubscribes) return nullptr;
  Provider* const provider = route->find(*peer->second);
  return provider == nullptr || provider->ended ? nullptr : provider;
}

// A relayed call of that very provider's, whose outcome is gathered.
void Exchange::ask_for(const Asking& asking, std::uint32_t place, const Peer& caller) {
  Provider* const provider = provider_at(asking, place);
  if (provider == nullptr) throw errors_.not_delivered;
  if (asking.bounds.deadline != kNoDeadline && now() >= asking.bounds.deadline) throw errors_.timed_out_before;
  const bool waits = !provider->is_free();
  if (!asking.request || (waits && !asking.kept)) throw too_many_bytes();
  if (!waits && !has_budget(*provider, asking.request->size())) throw provider_holds_too_much();
  if (waits && provider->waiting >= provider->terms.queue && !make_way(*provider, caller)) throw queue_is_full();
  rpc::MethodCounts& counts = provider->route->counts();
  auto extras = std::make_unique<RelayExtras>();
  extras->to_all = asking.request;
  extras->asked_by = &caller;
  extras->asker = caller.number;
  extras->gathered = {asking.gathering, place};
  const std::optional<SlotNumber> slot = calls_.take("0");
  if (!slot) throw too_many_calls();
  RelayedCall& call = calls_[*slot];
  call.began = asking.bounds.began;
  call.extras = std::move(extras);
  call.state = State::waiting;
  call.addressed = true;
  call.deadline = asking.bounds.deadline;
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
  asking.gathering->asked(place, calls_.number_of(*slot));
  if (!taps_.empty()) [[unlikely]]
    tap_call(*slot, *provider,
             {.caller = caller, .method = asking.method, .params = {.text = asking.request->params()}});
  hand_to(*provider, *slot);
}

// A call in no list of its provider's goes there. Throws std::bad_alloc.
void Exchange::send_to_all(SlotNumber slot) {
  const RelayedCall& call = calls_[slot];
  const RequestToAll& request = *call.extras->to_all;
  const milliseconds left{call.deadline == kNoDeadline ? 0 : milliseconds_left(call)};
  const Digits id{calls_.number_of(slot)};
  append_message(call.provider->peer->outlet(), [&](Buffer& out) { request.append_to(out, id.view(), left); });
  sent(slot);
  calls_[slot].extras->to_all = nullptr;
}

}  // namespace wirecall::broker
