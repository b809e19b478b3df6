// The part of Exchange (exchange.hpp) that is rpc.call_all: one call is asked of all providers of a method, each of
// whom has a relayed call of its own, and their outcomes are gathered.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "broker/exchange.hpp"
#include "broker/gathering.hpp"
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

// Of the caller's share, for each provider that is asked.
constexpr std::size_t kStepsOfProvider = 4;

// What is left of the call's time when the last provider has had its own: for putting together what has come.
constexpr nanoseconds kToAnswer = milliseconds{50};

struct Carried {
  Member member;
  std::string_view name;
};
// What goes on to each provider as the caller has said it.
constexpr std::array kCarried{Carried{Member::hops, "hops"}, Carried{Member::traceparent, "traceparent"},
                              Carried{Member::tracestate, "tracestate"}};

// The request for each provider; its id and `timeout_ms` are replaced when it is sent.
Buffer request_of(std::string_view method, const rpc::Sent* params, bool timed, const Received& message) {
  Buffer text;
  text.append(R"({"jsonrpc":"2.0","method":)");
  text.append(to_json(method));
  if (params != nullptr) text.append(R"(,"params":)"), text.append(params->text);
  if (timed) text.append(R"(,"timeout_ms":1)");
  for (const auto& [member, name] : kCarried) {
    if (!message.has(member)) continue;
    text.append(",\"");
    text.append(name);
    text.append("\":");
    text.append(message[member]);
  }
  text.append(R"(,"id":0})");
  return text;
}

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
  const Asked what{.caller = caller, .method = *method, .params = {.text = given != nullptr ? given->text : std::string_view{}}};
  const Buffer request = request_of(*method, given, timeout || message.has(Member::timeout_ms), message);

  // Each that is asked counts, but one call may ask as many as there are.
  if (caller.load().calls != 0 && caller.load().calls + route->providers().size() > limits_->in_flight) {
    throw message::make({.code = ErrorCode::limit_exceeded,
                         .reason = "too many calls of this connection are in flight",
                         .delivered = "no",
                         .limit = "in_flight"});
  }
  std::vector<Provider*> asked;
  const auto gathering = std::make_shared<Gathering>(limits_->max_message_size, caller.shared_load());
  for (const auto& provider : route->providers()) {
    if (provider->ended) continue;
    asked.push_back(provider.get());
    gathering->expect(provider->peer->name);
  }
  caller.outlet().charge(kStepsOfProvider * asked.size());
  call.on_reply([this, gathering](const Outcome& outcome) {
    gathering->end([&](std::uint64_t number) { caller_ended(number, outcome); });
  });
  gathering->answer_by(call.detach());
  for (std::uint32_t place = 0; place < asked.size(); ++place) {
    try {
      ask_for(*asked[place], what, request.view(), bounds, {gathering, place});
    } catch (const Error& error) {
      gathering->put(place, error);
    } catch (const std::bad_alloc&) {
      gathering->put(place, errors_.no_memory);
    }
  }
}

// A relayed call of that very provider's, whose outcome is gathered.
void Exchange::ask_for(Provider& provider, const Asked& asked, std::string_view request, const CallBounds& bounds,
                       const Gathered& gathered) {
  const bool waits = !provider.is_free();
  if (waits && !may_keep(asked.caller, request)) throw too_many_bytes();
  if (!waits && !has_budget(provider, request)) throw provider_holds_too_much();
  if (waits && provider.waiting >= provider.terms.queue && !make_way(provider, asked.caller)) throw queue_is_full();
  rpc::MethodCounts& counts = provider.route->counts();
  auto extras = std::make_unique<RelayExtras>();
  extras->request.keep(request, asked.caller.shared_load());
  extras->from = from_of(asked.caller);
  extras->asked_by = &asked.caller;
  extras->asker = asked.caller.number;
  extras->gathered = gathered;
  const std::optional<SlotNumber> slot = calls_.take("0");
  if (!slot) throw too_many_calls();
  RelayedCall& call = calls_[*slot];
  ++counts.calls;
  call.began = bounds.began;
  call.extras = std::move(extras);
  call.state = State::waiting;
  call.addressed = true;
  call.deadline = bounds.deadline;
  gathered.gathering->asked(gathered.place, calls_.number_of(*slot));
  if (bounds.deadline != kNoDeadline) {
    deadlines_.add(*slot);
    call.timed = true;
    watch(*slot);
  }
  if (!taps_.empty()) [[unlikely]]
    tap_call(*slot, provider, asked);
  hand_to(provider, *slot);
}

}  // namespace wirecall::broker
