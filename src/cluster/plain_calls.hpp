// PlainCalls: calls of clients of the bus that are no brokers and know JSON-RPC alone. What they send to
// `wc.<realm>.m.<method>` one broker of the realm takes, and serves as it would serve one of its own clients, as the
// principal that the options name; the answer goes to the reply subject. All of them count as one connection. A broker
// that knows no such principal takes none: the others do.
// Owned by PlainClients. One thread. Pure. Implements docs/cluster.md "Plain NATS clients".
#pragma once

#include <map>

#include "cluster/node.hpp"

namespace wirecall::cluster {

class PlainCalls {
 public:
  /// Of the calls of one method that this broker has served.
  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t errors = 0;
    std::chrono::nanoseconds time{0};  ///< until they were answered, together
    std::string last_error;            ///< code and message, as "-32602:Invalid params"
  };

  /// The queue group that the brokers are.
  static constexpr std::string_view kGroup = "wirecall";

  /// Whether this broker answers there, which it does by its own permissions: not where brokers are told anything, and
  /// not where the server is.
  [[nodiscard]] static bool may_be_answered(std::string_view reply) noexcept {
    return !reply.starts_with("wc.") && !reply.starts_with('$');
  }

  /// Whether the bus takes what it is given: else who is no broker is not answered, so that the brokers are heard.
  [[nodiscard]] static bool has_room(const NodeContext& context) noexcept;

  /// `principal` is whom they act as; empty for nobody. `context` outlives it.
  PlainCalls(NodeContext& context, std::string principal);
  ~PlainCalls();
  PlainCalls(PlainCalls&&) = delete;

  /// The principal, where there is one that this broker knows; else nothing. Null where nobody has to authenticate.
  [[nodiscard]] std::optional<const Principal*> principal() const noexcept;
  /// By methods of this realm that have been called.
  [[nodiscard]] const std::map<std::string, Counts, std::less<>>& counts() const noexcept { return counts_; }
  /// Whether this broker takes what comes, as one of the realm's; at first it does not.
  [[nodiscard]] bool takes_part() const noexcept { return takes_part_; }
  /// Others take what comes from now on.
  void drain() noexcept;
  /// Who called before the bus was lost is not answered any more.
  void abandon() noexcept;
  /// Now and then: takes part where it may and the principal is known, and else does not; and ends the calls of one
  /// that may do other things than before.
  void tick(bool may_take) noexcept;
  [[nodiscard]] bool busy() const noexcept { return !requests_.empty(); }

 private:
  class Request;
  static constexpr std::size_t kIdleMax = 64;
  static constexpr std::size_t kCountsMax = 20'000;

  void take(const BusMessage& message);
  [[nodiscard]] std::unique_ptr<Request> take_idle();
  void answered(Request& request);
  void count(const Request& request, bool failed, std::string_view answer_error);
  void finish(Request& request) noexcept;
  [[nodiscard]] std::string refusal_reason() const;
  void take_part(bool takes);
  void end_calls_of_former() noexcept;

  NodeContext* context_;
  const std::string principal_;
  std::shared_ptr<rpc::PeerLoad> load_ = std::make_shared<rpc::PeerLoad>();
  std::map<const Request*, std::unique_ptr<Request>> requests_;  // that are not answered yet
  std::vector<std::unique_ptr<Request>> idle_;
  std::map<std::string, Counts, std::less<>> counts_;
  std::shared_ptr<const rpc::Authority> authority_;  // under which those in progress have begun
  bool takes_part_ = false;
  bool drained_ = false;
  bool told_of_refusal_ = false;
};

}  // namespace wirecall::cluster
