// See call_all.hpp.
#include "broker/call_all.hpp"

#include "broker/outgoing.hpp"
#include "broker/stream_request.hpp"
#include "rpc/call_options.hpp"

namespace wirecall::broker {

constexpr std::array<std::string_view, 3> kNames{"method", "params", "timeout_ms"};

// Of the caller's share, and of a turn's, for each provider that is asked, besides what its copy of the request takes.
constexpr std::size_t kStepsOfProvider = 4;
// So many outcomes are prepared for in a step.
constexpr std::size_t kExpectedInStep = 4;

static Error not_for_all(std::string_view why) {
  return Error::with_data(ErrorCode::invalid_params, R"({"reason":)" + to_json(why) + "}");
}

static Error unknown_method(std::string_view near) {
  return Error::with_data(ErrorCode::method_not_found,
                          near.empty() ? std::string{} : R"({"did_you_mean":)" + to_json(near) + "}");
}

CallAll::CallAll(BrokerContext& context, CallLedger& calls, Relay& relay, TapFeed& tap_feed)
    : context_(&context),
      calls_(calls),
      relay_(&relay),
      tap_feed_(&tap_feed),
      method_(untyped_method<[](CallAll& own, Call& call) { own.call(call); }>("rpc.call_all", *this)),
      budget_(context.loop.scheduler, kSteps, [this] { ask_more(); }) {}

// The route that all of whose providers are to be asked; null where another method has answered why not, or throws it.
// Of what a node asks for this node's own clients are all.
const Route* CallAll::find_route(Call& call, const Peer& caller, std::string_view method) const {
  const bool allowed = rpc::may_call(caller.principal, method);
  if (allowed && context_->own.find(method) != nullptr)
    throw not_for_all("the server itself is the one provider of this method: call it by itself");
  const Route* const route = context_->methods.find(method);
  const bool provided = route != nullptr && (caller.of_node ? route->is_for_nodes() : route->is_provided());
  if (!provided || !allowed) {
    const Method* const absent =
        allowed && context_->realm != nullptr ? context_->realm->find_absent(caller, method) : nullptr;
    if (absent != nullptr) {
      absent->invoke(call);
      return nullptr;
    }
    if (!call.is_notification()) caller.load().count_undelivered();
    throw unknown_method(context_->methods.nearest(method, caller.principal));
  }
  if (route->description.subscription || route->description.unsubscribes)
    throw not_for_all("a subscription has one provider: call its method by itself");
  return route;
}

// As what is asked of it counts: no more than a connection may have, whatever another node says.
std::size_t CallAll::calls_of(const Provider& provider) const noexcept {
  return provider.at_node ? std::min<std::size_t>(provider.options.providers, context_->limits.in_flight) : 1;
}

// Who is asked, by the index of the outcome.
void CallAll::expect(const Route& route, const Peer& caller, Scatter& scatter) {
  CallAllResults& results = *scatter.results;
  for (const auto& provider : route.providers()) {
    if (provider->ended || (provider->at_node && caller.of_node)) continue;
    scatter.providers.push_back(provider->peer->number);
    const RemoteNode* const node = provider->peer->node;
    if (node != nullptr) {
      results.expect_node(node->name(), calls_of(*provider));
    } else {
      results.expect(provider->peer->name);
    }
  }
  if (context_->realm == nullptr || caller.of_node) return;
  context_->realm->each_absent(route.name(), [&](std::string_view node, LostBy by) {
    scatter.absent.emplace_back(results.expect_node(node, 1), by);
  });
}

void CallAll::call(Call& call) {
  if (call.message().has(Member::to)) return call.error(context_->errors.not_there);
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
  const Peer& caller = caller_of(call);
  const Route* const route = find_route(call, caller, *method);
  if (route == nullptr) return;
  if (call.is_notification()) return call.end_result();  // nobody would learn the outcomes
  if (timeout == 0U) throw context_->errors.timed_out_before;

  CallBounds bounds = call.bounds();
  if (bounds.deadline != kNoDeadline) {
    const std::chrono::nanoseconds left = bounds.deadline - context_->now();
    bounds.deadline -= std::min<std::chrono::nanoseconds>(RequestToAll::kToAnswer, left / 2);
  }
  if (timeout) bounds.deadline = std::min(bounds.deadline, context_->now() + std::chrono::milliseconds{*timeout});
  // Each that is asked counts, but one call may ask as many as there are. A node keeps that for its callers.
  std::size_t calls = caller.load().calls;
  for (const auto& provider : route->providers()) calls += calls_of(*provider);
  if (!caller.of_node && caller.load().calls != 0 && calls > context_->limits.in_flight)
    throw limit_exceeded("too many calls of this connection are in flight", "in_flight");
  const std::string_view asked_for = given != nullptr ? given->text : std::string_view{};
  const std::string from = from_of(caller, message);
  const bool timed = (timeout && !caller.of_node) || message.has(Member::timeout_ms);
  const auto request = std::make_shared<RequestToAll>(
      RequestToAll::Parts{.from = from,
                          .method = *method,
                          .params = asked_for,
                          .progress_token = progress_token(*context_->loop.codecs.readers.reader, asked_for),
                          .timed = bounds.deadline != kNoDeadline && timed},
      message);
  const auto results = std::make_shared<CallAllResults>(context_->limits.max_message_size, caller.shared_load());
  std::list<Scatter> scatter;
  scatter.push_back({.results = results,
                     .request = request,
                     .caller = caller.number,
                     .route = route->name(),
                     .method = *method,
                     .bounds = bounds,
                     .kept = relay_->may_keep(caller, request->text())});
  if (scatter.front().kept) request->keep_for(caller.shared_load());
  expect(*route, caller, scatter.front());
  caller.sink().charge(scatter.front().providers.size() / kExpectedInStep);
  call.on_reply([this, results](const Outcome& outcome) {
    results->end([&](std::uint64_t number) { relay_->caller_ended(number, outcome); });
  });
  results->set_sink(call.detach());
  for (const auto& [index, by] : scatter.front().absent) results->set(index, context_->errors.lost(by, false));
  begin(std::move(scatter));
}

// Of a node's caller what the node says: it tells that in the message.
std::string CallAll::from_of(const Peer& caller, const Received& message) const {
  if (!caller.of_node) return context_->from_of(caller);
  return context_->settings.disclose_callers && message.has(Member::from) ? std::string{message[Member::from]}
                                                                          : std::string{};
}

// So many of the providers in this turn as it has time for, and the others in later ones, where several calls take
// turns.
void CallAll::begin(std::list<Scatter> scatter) noexcept {
  Scatter& begun = scatter.front();
  budget_.spend(ask_some(begun, scatters_.empty() ? budget_.steps() : budget_.share(kStepsAtOnce)));
  if (!begun.is_done()) {
    if (!begun.kept) begun.request = nullptr;
    scatters_.splice(scatters_.end(), scatter);
  }
  ask_later();
}

// Returns what it has taken: the last one may take more than there was left.
std::size_t CallAll::ask_some(Scatter& scatter, std::size_t steps) noexcept {
  Peer* const caller = context_->peers.find(scatter.caller);
  if (caller == nullptr) scatter.results->abandon();
  const std::size_t bytes = scatter.request ? scatter.request->size() : 0;
  const std::size_t each = kStepsOfProvider + cost_of_deliveries(1, bytes);
  std::size_t taken = 0;
  for (; taken < steps && !scatter.is_done(); taken += each) {
    const std::uint32_t index = scatter.asked++;
    caller->sink().charge(each);
    try {
      ask(scatter, index, *caller);
    } catch (const Error& error) {
      scatter.results->set(index, error);
    } catch (const std::bad_alloc&) {
      scatter.results->set(index, context_->errors.no_memory);
    }
  }
  return taken;
}

void CallAll::ask_more() noexcept {
  while (!scatters_.empty() && !budget_.is_spent()) {
    budget_.spend(ask_some(scatters_.front(), budget_.share(kStepsAtOnce)));
    if (scatters_.front().is_done()) {
      scatters_.pop_front();
    } else {
      scatters_.splice(scatters_.end(), scatters_, scatters_.begin());
    }
  }
  ask_later();
}

void CallAll::ask_later() noexcept {
  if (budget_.resume_later(!scatters_.empty())) return;
  for (; !scatters_.empty(); scatters_.pop_front()) static_cast<void>(ask_some(scatters_.front(), TurnBudget::kAll));
  budget_.refill();
}

// The provider at that index, unless it has gone since the call came, or provides the method no more.
Provider* CallAll::provider_at(const Scatter& scatter, std::uint32_t index) const noexcept {
  const Peer* const peer = context_->peers.find(scatter.providers[index]);
  const Route* const route = context_->methods.find_registered(scatter.route);
  if (peer == nullptr || route == nullptr) return nullptr;
  if (route->description.subscription || route->description.unsubscribes) return nullptr;
  Provider* const provider = route->find(*peer);
  return provider == nullptr || provider->ended ? nullptr : provider;
}

// A relayed call of that very provider's, whose outcome goes into the results.
void CallAll::ask(const Scatter& scatter, std::uint32_t index, const Peer& caller) {
  Provider* const provider = provider_at(scatter, index);
  if (provider == nullptr) throw context_->errors.not_delivered;
  if (scatter.bounds.deadline != kNoDeadline && context_->now() >= scatter.bounds.deadline)
    throw context_->errors.timed_out_before;
  const bool waits = !provider->is_free();
  if (!scatter.request || (waits && !scatter.kept)) throw too_many_bytes();
  if (!waits && !has_budget(*provider, scatter.request->size())) throw provider_holds_too_much();
  if (waits && !relay_->admits_waiting(*provider, caller)) throw queue_is_full();
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
  call.state = RelayedCall::State::waiting;
  call.addressed = true;
  call.deadline = scatter.bounds.deadline;
  if (call.deadline != kNoDeadline) {
    try {
      calls_.start_timer(*slot);
    } catch (...) {
      calls_.drop(*slot);
      throw;
    }
  }
  ++counts.calls;
  scatter.results->set_call(index, calls_.number_of(*slot));
  if (!tap_feed_->empty()) [[unlikely]]
    tap_feed_->call(calls_.number_of(*slot), *provider,
                    {.caller = caller, .method = scatter.method, .params = {.text = scatter.request->params()}});
  relay_->hand_to(*provider, *slot);
}

}  // namespace wirecall::broker
