// ServiceAnswers: tells those who look for services on the bus (`nats micro ls`) that this node is one, by the protocol
// of NATS services: `$SRV.PING`, `$SRV.INFO` and `$SRV.STATS`. Its endpoints are the methods of all nodes that the
// principal of plain NATS clients may call, since each node takes calls of all. Owned by PlainClients. One thread.
// Pure. The protocol: NATS ADR-32.
#pragma once

#include "cluster/plain_calls.hpp"

namespace wirecall::cluster {

class ServiceAnswers {
 public:
  /// All referred to outlive it.
  ServiceAnswers(NodeContext& context, const PlainCalls& calls, std::string_view realm);
  ServiceAnswers(ServiceAnswers&&) = delete;

  /// The node is no service any more.
  void drain() noexcept;

 private:
  enum class Verb : std::uint8_t { ping, info, stats };
  static constexpr std::size_t kVerbs = 3;
  // An answer that has just been written is given again: who asks often does not keep the broker busy.
  static constexpr std::chrono::milliseconds kAnswerAge{100};

  void take(const BusMessage& message);
  [[nodiscard]] std::string write(Verb verb) const;
  [[nodiscard]] std::string endpoint(Verb verb, std::string_view method) const;

  NodeContext* context_;
  const PlainCalls* calls_;
  const std::string name_;  // of the service, which all nodes of the realm are
  const std::string realm_;
  const std::string started_;  // as RFC 3339
  std::vector<std::string> subjects_;
  struct Written {
    std::string text;
    std::chrono::nanoseconds at{-1};  // negative for never
  };
  std::array<Written, kVerbs> written_;
};

}  // namespace wirecall::cluster
