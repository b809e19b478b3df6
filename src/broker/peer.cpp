// See peer.hpp.
#include "broker/peer.hpp"

#include "broker/linked_broker.hpp"
#include "broker/methods.hpp"
#include "broker/router.hpp"
#include "rpc/request_subject.hpp"

namespace wirecall::broker {

Peer::Peer(Router& router, rpc::MessageSink& sink, std::shared_ptr<rpc::PeerLoad> load)
    : connected_at(router.context().now()),
      counts{.bytes_in = 0, .bytes_out = 0, .heard_at = connected_at},
      router_(&router),
      sink_(&sink),
      load_(std::move(load)) {
  sink.count_into(&counts);
}

void Peer::leave() noexcept {
  sink_->count_into(nullptr);
  sink_ = &router_->null_sink();
  retained_reader = nullptr;
  router_->forget(*this);
}

void Peer::keep_last() noexcept {
  if (has_ended()) return;
  methods_last = static_cast<std::uint32_t>(provides.size());
  subscriptions_last = static_cast<std::uint32_t>(topics.count());
}

const Method* Peer::find(std::string_view name, const Received& message) {
  if (is_reserved(name)) [[unlikely]] {
    const Method& call_all = router_->call_all().method();
    if (name == call_all.name()) return &call_all;
    if (const Method* const of_queues = router_->work_queues().find(name)) return of_queues;
    const Method* const of_leases = router_->leases().find(name, message);
    return of_leases != nullptr ? of_leases : router_->durable_topics().find(name, message);
  }
  const Route* route = router_->methods().find(name);
  if (route != nullptr && route->policy() == Policy::exclusive && router_->leases().end_late(route->name()))
    route = router_->methods().find(name);
  // What a node asks for is served here, or not at all.
  if (route != nullptr && (of_node ? route->is_for_nodes() : route->is_provided())) return &route->method();
  Realm* const realm = router_->context().realm.get();
  return realm != nullptr ? realm->find_absent(*this, name) : nullptr;
}

std::string Peer::name_json() const { return to_json(name); }

std::string_view Peer::nearest(std::string_view name) const { return router_->methods().nearest(name, principal); }

const rpc::ReservedMethod* Peer::find_reserved(std::string_view name) const noexcept {
  return find_broker_method(name);
}

rpc::HelloResult Peer::hello(std::string_view name, std::string_view resume) {
  return router_->sessions().hello(*this, name, resume);
}

bool Peer::takes_encoded(const Received& message) const noexcept {
  return router_->relay().takes_encoded(*this, message);
}

bool Peer::response(const Received& message) {
  return router_->relay().response(*this, message) || router_->durable_topics().response(*this, message);
}

void Peer::notified(const Received& message, std::string_view name) {
  if (source != nullptr && router_->subscriptions().event(*this, name, message)) [[unlikely]]
    return;
  if (of_node) [[unlikely]]
    return router_->events().notified_elsewhere();
  if (linked != nullptr && linked->notified(message, name)) [[unlikely]]
    return router_->events().notified_elsewhere();
  router_->events().notified(*this, name, message);
  if (linked != nullptr) return;  // of the two processes one has the store: what was published at the other is not kept
  router_->durable_topics().notified(*this, name, message);
}

void Peer::tapped(Call& call, std::string_view name) { router_->tap_feed().own(call, name); }

void Peer::refused(std::string_view method, EncodedText params, const Error& error) noexcept try {
  // Of rpc.hello they are secrets, and of params that are wrong they may be.
  const bool tells = method != "rpc.hello" && error.code() != static_cast<int>(ErrorCode::invalid_params);
  router_->log().failed(method, this, error, tells ? rpc::subject_of(params) : std::string{});
} catch (const std::bad_alloc&) {
  router_->log().failed(method, this, error);
}

void Peer::not_granted(std::string_view method) noexcept { router_->log().not_granted(*this, method); }

void Peer::on_writable() { router_->on_writable(*this); }

std::shared_ptr<rpc::Rendering> Peer::take_answer() noexcept { return router_->events().take_answer(); }

void Peer::reserved_answered() {
  if (!retained || retained->asked.empty()) [[likely]]
    return;
  router_->retained().begin(*this);
}

std::size_t Peer::cancel(std::string_view id_json) { return router_->relay().cancel(*this, id_json); }

bool Peer::grant(std::string_view id_json, std::uint64_t more) {
  return router_->streams().grant(*this, id_json, more) || router_->inputs().grant(*this, id_json, more);
}

bool Peer::shed_call() noexcept { return router_->relay().shed_call(*this); }

void Peer::end_calls(const Error& error) noexcept { router_->relay().end_calls(*this, &error); }

void Peer::limit_calls(std::size_t kept, std::chrono::nanoseconds until, const Error& error) noexcept {
  router_->relay().limit_calls(*this, kept, until, error);
}

bool Peer::release() noexcept { return router_->release(*this); }
bool Peer::is_replaced() const noexcept { return router_->is_replaced(); }
void Peer::peer_ended() noexcept {
  router_->departures().end_peer(*this);
  router_->durable_topics().leave(*this);
}

}  // namespace wirecall::broker
