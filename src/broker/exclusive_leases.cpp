// See exclusive_leases.hpp.
#include "broker/exclusive_leases.hpp"

#include "broker/durable_answers.hpp"
#include "broker/methods.hpp"
#include "broker/outgoing.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

using rpc::ReservedParams;
using std::chrono::nanoseconds;

// A lease is renewed so many times in its time, and ends here after that part of it: before another may have it.
constexpr int kRenewals = 4;
constexpr int kParts = 5;
constexpr int kPartsHeld = 4;
constexpr std::string_view kLate = "its lease could not be renewed";

struct LeaseRow {
  std::uint64_t token;
};

struct ExclusiveLeases::Asking {
  Asking(ExclusiveLeases& its_leases, std::uint64_t its_peer) noexcept
      : leases(&its_leases), alive(its_leases.alive_), peer(its_peer) {}
  Asking(Asking&&) = delete;
  /// However it ends, also for want of memory.
  ~Asking() {
    if (!alive.expired()) leases->ended(*this);
  }

  ExclusiveLeases* leases;
  std::weak_ptr<char> alive;
  std::uint64_t peer;
  ReplySink sink{};
  std::vector<Registration> registrations{};
  std::vector<std::string> names{};  // that want leases
  std::size_t next = 0;              // that is asked for
};

ExclusiveLeases::ExclusiveLeases(BrokerContext& context, Registrar& registrar, durable::Store* store)
    : context_(&context),
      registrar_(&registrar),
      store_(store),
      register_(
          untyped_method<[](ExclusiveLeases& own, Call& call) { own.register_methods(call); }>("rpc.register", *this)),
      lease_(untyped_method<[](ExclusiveLeases& own, Call& call) { own.lease(call); }>("rpc.lease", *this)) {
  context.leases = this;
}

ExclusiveLeases::~ExclusiveLeases() {
  context_->leases = nullptr;
  context_->loop.stop(*this);
}

const Method* ExclusiveLeases::find(std::string_view name, const Received& message) {
  if (name == lease_.name()) return &lease_;
  if (name != register_.name() || store_ == nullptr || !store_->is_shared()) return nullptr;
  const std::string_view params = message.params();
  const bool may_be = !message.is_json() || params.find("exclusive") != params.npos || params.find('\\') != params.npos;
  return may_be ? &register_ : nullptr;
}

// ---- registering ----

void ExclusiveLeases::register_methods(Call& call) {
  Peer& caller = caller_of(call);
  const rpc::PeerCapabilities can = caller.sink().capabilities();
  if (can.datagrams || !can.registration)
    throw Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})");
  Buffer params;
  params.append(json_of(call.reader(), "params", {.text = call.params(), .kind = ValueKind::object}));
  const auto asking = std::make_shared<Asking>(*this, caller.number);
  asking->registrations = read_registrations(*context_, params.padded());
  std::vector<std::string> names;
  for (const Registration& one : asking->registrations) {
    if (one.policy != Policy::exclusive) continue;
    if (!rpc::may_provide(caller.principal, one.name)) throw forbidden();
    const auto held = held_.find(one.name);
    if (held != held_.end() && held->second.peer == caller.number) continue;
    if (held != held_.end() || asked_for_.contains(one.name))
      throw conflict("the method is provided by another connection, which wants to be the only one");
    if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
  }
  asking->names = std::move(names);
  asked_for_.insert(asking->names.begin(), asking->names.end());
  asking->sink = call.detach();
  asking->sink.keeps(params.size());
  ask_next(asking);
}

// One after the other: there are few.
void ExclusiveLeases::ask_next(const std::shared_ptr<Asking>& asking) {
  if (asking->next == asking->names.size()) return finish(asking);
  store_->lease(asking->names[asking->next], 0,
                [this, alive = std::weak_ptr{alive_}, asking,
                 asked_at = context_->now()](const durable::Outcome<durable::Leased>& outcome) {
                  if_memory_allows([&] {
                    if (!alive.expired()) leased(asking, asked_at, outcome);
                  });
                });
}

void ExclusiveLeases::leased(const std::shared_ptr<Asking>& asking, nanoseconds asked_at,
                             const durable::Outcome<durable::Leased>& outcome) {
  const std::string& name = asking->names[asking->next];
  if (!outcome) {
    const bool taken = outcome.error().kind == durable::Failure::Kind::conflict;
    return asking->sink.error(
        taken ? conflict("the method is provided at another node, by one which wants to be the only one")
              : error_of(outcome.error()));
  }
  held_[name] = {.peer = asking->peer,
                 .token = outcome->revision,
                 .revision = outcome->revision,
                 .until = asked_at + outcome->time * kPartsHeld / kParts};
  wait();
  ++asking->next;
  ask_next(asking);
}

void ExclusiveLeases::finish(const std::shared_ptr<Asking>& asking) {
  Peer* const peer = context_->peers.find(asking->peer);
  try {
    if (peer == nullptr) throw has_ended();
    answer(asking->sink, std::uint64_t{add_registrations(*peer, std::move(asking->registrations))});
  } catch (const Error& error) {
    asking->sink.error(error);
  }
}

// What it has been given and does not provide is free again.
void ExclusiveLeases::ended(const Asking& asking) noexcept {
  for (const std::string& name : asking.names) {
    asked_for_.erase(name);
    provided_changed(name);
  }
}

void ExclusiveLeases::lease(Call& call) {
  constexpr std::array<std::string_view, 1> kNames{"method"};
  const ReservedParams<1> params{call.reader(), call.params(), kNames};
  const auto method = params.as<std::string>(0);
  if (!method) params.refuse("method", params.find(0), "string");
  const auto held = held_.find(*method);
  if (held == held_.end() || held->second.peer != caller_of(call).number)
    throw Error::with_data(ErrorCode::invalid_params, R"({"reason":"this connection has no lease of that method"})");
  ReplySink sink = call.detach();
  answer(sink, LeaseRow{held->second.token});
}

// ---- holding ----

bool ExclusiveLeases::is_provided(const std::string& method, const Held& held) const noexcept {
  const Route* const route = context_->methods.find_registered(method);
  return route != nullptr && std::ranges::any_of(route->providers(), [&](const auto& provider) {
           return !provider->ended && !provider->at_node && provider->peer->number == held.peer;
         });
}

void ExclusiveLeases::provided_changed(std::string_view method) noexcept {
  const auto held = held_.find(method);
  if (held == held_.end() || asked_for_.contains(method) || is_provided(held->first, held->second)) return;
  if_memory_allows([&] { release(std::string{method}); });
}

void ExclusiveLeases::release(const std::string& method) {
  const auto held = held_.extract(method);
  if (held) store_->end_lease(held.mapped().revision);
}

void ExclusiveLeases::renew(const std::string& method, Held& held) {
  held.renews = true;
  store_->lease(method, held.revision,
                [this, alive = std::weak_ptr{alive_}, method, token = held.token,
                 asked_at = context_->now()](const durable::Outcome<durable::Leased>& outcome) {
                  if_memory_allows([&] {
                    if (alive.expired()) return;
                    const auto found = held_.find(method);
                    if (found == held_.end() || found->second.token != token) {
                      if (outcome) store_->end_lease(outcome->revision);
                      return;
                    }
                    found->second.renews = false;
                    if (outcome) {
                      found->second.revision = outcome->revision;
                      found->second.until = asked_at + outcome->time * kPartsHeld / kParts;
                    } else if (outcome.error().kind == durable::Failure::Kind::conflict) {
                      lose(method, "another has its lease");
                    }
                  });
                });
}

void ExclusiveLeases::lose(const std::string& method, std::string_view why) {
  const auto held = held_.extract(method);
  if (!held) return;
  context_->loop.write_log(LogLevel::error,
                           "the registration of " + method + ", which wants one provider, ends: " + std::string{why});
  if (Peer* const peer = context_->peers.find(held.mapped().peer))
    static_cast<void>(registrar_->unregister(*peer, method));
}

// A loop that stood still hears of calls before its timers.
bool ExclusiveLeases::end_late(std::string_view method) noexcept {
  const auto held = held_.find(method);
  if (held == held_.end() || context_->now() < held->second.until) return false;
  bool ended = false;
  if_memory_allows([&] {
    lose(std::string{method}, kLate);
    ended = true;
  });
  return ended;
}

void ExclusiveLeases::wait() {
  if (held_.empty() || context_->loop.scheduler == nullptr || std::exchange(waits_, true)) return;
  context_->loop.scheduler->start(*this, store_->lease_time() / (kRenewals * 2));
}

void ExclusiveLeases::expired() {
  waits_ = false;
  if_memory_allows([&] {
    const nanoseconds now = context_->now();
    const nanoseconds held_for = store_->lease_time() * kPartsHeld / kParts;
    std::vector<std::string> late;
    std::vector<std::string> unprovided;  // for want of memory to say so
    for (auto& [method, held] : held_) {
      if (held.until <= now) {
        late.push_back(method);
      } else if (!asked_for_.contains(method) && !is_provided(method, held)) {
        unprovided.push_back(method);
      } else if (!held.renews && held.until - now <= held_for - store_->lease_time() / kRenewals) {
        renew(method, held);
      }
    }
    for (const std::string& method : unprovided) release(method);
    for (const std::string& method : late) lose(method, kLate);
  });
  wait();
}

}  // namespace wirecall::broker
