// RequestToAll: what rpc.call_all asks each provider of a method, written once for all of them: what differs, the id
// and the time that is left, is put in as it is sent. It is kept as long as one of them has not been sent it, and
// counts once among what is kept for its caller. One thread. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "rpc/dispatcher.hpp"
#include "rpc/load_bytes.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class RequestToAll {
 public:
  struct Parts {
    std::string_view from;  ///< as BrokerContext::from_of says it; empty for none
    std::string_view method;
    std::string_view params;          ///< an array or object; empty for none
    std::string_view progress_token;  ///< a member's value in these, which goes with its member; empty for none
    bool timed;                       ///< it says how much time is left
  };

  /// `caller`: its members that go on as they are. Throws std::bad_alloc.
  RequestToAll(const Parts& parts, const Received& caller);

  /// Counts among what is kept for that connection until it goes.
  void keep_for(const std::shared_ptr<rpc::PeerLoad>& load) noexcept { held_.set(load, text_.size()); }

  /// `left` is said where the request is timed. Throws std::bad_alloc.
  void append_to(Buffer& out, std::string_view id, std::chrono::milliseconds left) const;

  /// How long it is, but for what is put in.
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] std::string_view text() const noexcept { return text_.view(); }
  /// Empty for none.
  [[nodiscard]] std::string_view params() const noexcept { return text().substr(params_at_, params_bytes_); }

 private:
  Buffer text_;
  std::size_t params_at_ = 0;
  std::size_t params_bytes_ = 0;
  std::optional<std::size_t> time_at_;
  std::size_t id_at_;
  rpc::HeldBytes held_;
};

}  // namespace wirecall::broker
