// PeerCalls: the calls that handlers of one connection make of its peer, by their ids, which are strings so that they
// are no client's. Owned by the connection's dispatcher and by the contexts of its calls; those that outlive it find
// that the peer has gone. One thread. Implements docs/wire.md "Calls to the caller".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "rpc/dispatcher.hpp"
#include "wirecall/error.hpp"
#include "wirecall/peer.hpp"

namespace wirecall::rpc {

class PeerCalls {
 public:
  /// All referred to are used until `gone`.
  PeerCalls(Outlet& outlet, const Workspace& workspace, const Limits& limits) noexcept
      : outlet_(&outlet), workspace_(&workspace), limits_(&limits) {}

  /// Sends a request for `call`. Throws Error when it cannot.
  void begin(detail::PeerCall& call, const Context& context, std::string_view method, std::string_view params_json);
  void notify(const Context& context, std::string_view method, std::string_view params_json);
  /// The call is not waited for any more: tells the peer.
  void give_up(detail::PeerCall& call) noexcept;
  void expired(detail::PeerCall& call);
  /// False when the response is to none of these calls. Its spans last until this returns.
  bool response(const Received& message);
  /// The peer answers nothing any more: all fail with -32001.
  void peer_ended();
  /// The connection is over: from now on nothing is sent, and nothing referred to is used.
  void gone() noexcept;
  [[nodiscard]] bool empty() const noexcept { return calls_.empty(); }

 private:
  void require_sendable(const Context& context) const;
  void require_fitting(const Buffer& text, std::string_view reason) const;
  void forget(detail::PeerCall& call) noexcept;
  void append_message(std::string_view text);

  Outlet* outlet_;
  const Workspace* workspace_;
  const Limits* limits_;
  std::map<std::uint64_t, detail::PeerCall*> calls_;
  std::uint64_t last_id_ = 0;
  bool ended_ = false;  // the peer sends no more
  bool gone_ = false;
};

}  // namespace wirecall::rpc
