// See peer.hpp.
#include "broker/peer.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/words.hpp"
#include "broker/exchange.hpp"
#include "broker/methods.hpp"
#include "rpc/request_subject.hpp"

namespace wirecall::broker {

Peer::Peer(Exchange& exchange, rpc::Outlet& outlet, std::shared_ptr<rpc::PeerLoad> load)
    : met(exchange.now()),
      counts{.bytes_in = 0, .bytes_out = 0, .heard_at = met},
      exchange_(&exchange),
      outlet_(&outlet),
      load_(std::move(load)) {
  outlet.count_into(&counts);
}

void Peer::leave() noexcept {
  outlet_->count_into(nullptr);
  outlet_ = &exchange_->nobody();
  exchange_->forget(*this);
}

void Peer::keep_last() noexcept {
  if (ended) return;
  methods_last = static_cast<std::uint32_t>(provides.size());
  subscriptions_last = static_cast<std::uint32_t>(subscription_count());
}

const Method* Peer::find(std::string_view name) {
  if (is_reserved(name)) [[unlikely]] {
    const Method& call_all = exchange_->call_all_method();
    return name == call_all.name() ? &call_all : nullptr;
  }
  const Route* const route = exchange_->methods().find(name);
  return route != nullptr && route->is_provided() ? &route->method() : nullptr;
}

std::string_view Peer::nearest(std::string_view name) const { return exchange_->methods().nearest(name, principal); }

const rpc::ReservedMethod* Peer::find_reserved(std::string_view name) const noexcept {
  return find_broker_method(name);
}

rpc::Introduction Peer::introduce(std::string_view name, std::string_view resume) {
  return exchange_->introduce(*this, name, resume);
}

bool Peer::takes_packed(const Received& message) const noexcept { return exchange_->takes_packed(*this, message); }

bool Peer::response(const Received& message) { return exchange_->response(*this, message); }

void Peer::notified(const Received& message, std::string_view name) {
  if (source != nullptr && exchange_->method_event(*this, name, message)) [[unlikely]]
    return;
  exchange_->notified(*this, name, message);
}

void Peer::tapped(Call& call, std::string_view name) { exchange_->tap_own(call, name); }

void Peer::refused(std::string_view method, std::string_view params, const Error& error) noexcept try {
  // Of rpc.hello they are secrets, and of params that are wrong they may be.
  const bool tells = method != "rpc.hello" && error.code() != static_cast<int>(ErrorCode::invalid_params);
  exchange_->log().failed(method, this, error, tells ? rpc::subject_of(params) : std::string{});
} catch (const std::bad_alloc&) {
  exchange_->log().failed(method, this, error);
}

void Peer::not_granted(std::string_view method) noexcept { exchange_->log().not_granted(*this, method); }

void Peer::room() { exchange_->room(*this); }

std::shared_ptr<rpc::Rendering> Peer::take_answer() noexcept { return exchange_->take_answer(); }

void Peer::reserved_answered() {
  if (!retained || retained->asked.empty()) [[likely]]
    return;
  exchange_->send_retained(*this);
}

std::size_t Peer::cancel(std::string_view id_json) { return exchange_->cancel(*this, id_json); }

bool Peer::grant(std::string_view id_json, std::uint64_t more) { return exchange_->grant(*this, id_json, more); }

bool Peer::make_way() noexcept { return exchange_->make_way(*this); }

void Peer::end_calls(const Error& error) noexcept { exchange_->end_calls(*this, &error); }

void Peer::limit_calls(std::size_t kept, std::chrono::nanoseconds until, const Error& error) noexcept {
  exchange_->limit_calls(*this, kept, until, error);
}

void Peer::peer_ended() noexcept { exchange_->end_peer(*this); }

}  // namespace wirecall::broker
