// CallAll: rpc.call_all: one call is asked of all providers of a method, each of whom has a relayed call of its own,
// and their outcomes are gathered; so has each other node, which answers for its clients. Many, and those of a long
// request, are asked in shares, over several turns. One thread.
#pragma once

#include <list>

#include "broker/call_all_shared.hpp"
#include "broker/call_ledger.hpp"
#include "broker/context.hpp"
#include "broker/method_table.hpp"
#include "broker/peer_table.hpp"
#include "broker/relay.hpp"
#include "broker/tap_feed.hpp"
#include "broker/turn_budget.hpp"

namespace wirecall::broker {

class CallAll {
 public:
  /// All referred to outlive it.
  CallAll(BrokerContext& context, CallLedger& calls, Relay& relay, TapFeed& tap_feed);
  CallAll(CallAll&&) = delete;

  /// rpc.call_all, to be invoked as a method of the process's own is.
  [[nodiscard]] const Method& method() const noexcept { return method_; }

 private:
  // Steps of a share that one turn spends for all such calls together, and for one at a time where there are several;
  // the last provider that is asked may take more.
  static constexpr std::size_t kSteps = 512;
  static constexpr std::size_t kStepsAtOnce = 128;

  // Not all of its providers have been asked yet. Those and the caller are known by Peer::number, since they may go
  // meanwhile.
  struct Scatter {
    std::shared_ptr<CallAllResults> results;
    std::shared_ptr<const RequestToAll> request;  // null where it is not kept for those that are left
    std::uint64_t caller;
    std::string route;  // its name
    std::string method;
    CallBounds bounds;
    bool kept;                                  // whether the request is kept for providers that are not free
    std::vector<std::uint64_t> providers = {};  // in the order of their indices
    std::uint32_t asked = 0;                    // so many of them
    std::vector<std::pair<std::uint32_t, LostBy>> absent = {};  // indices of nodes that cannot be asked, and why

    [[nodiscard]] bool is_done() const noexcept { return asked == providers.size() || results->has_ended(); }
  };

  void call(Call& call);
  [[nodiscard]] const Route* find_route(Call& call, const Peer& caller, std::string_view method) const;
  [[nodiscard]] std::string from_of(const Peer& caller, const Received& message) const;
  [[nodiscard]] std::size_t calls_of(const Provider& provider) const noexcept;
  void expect(const Route& route, const Peer& caller, Scatter& scatter);
  void begin(std::list<Scatter> scatter) noexcept;
  [[nodiscard]] std::size_t ask_some(Scatter& scatter, std::size_t steps) noexcept;
  void ask_more() noexcept;
  void ask_later() noexcept;
  [[nodiscard]] Provider* provider_at(const Scatter& scatter, std::uint32_t index) const noexcept;
  void ask(const Scatter& scatter, std::uint32_t index, const Peer& caller);

  BrokerContext* context_;
  CallLedger& calls_;
  Relay* relay_;
  TapFeed* tap_feed_;
  const Method method_;
  std::list<Scatter> scatters_;
  TurnBudget budget_;
};

}  // namespace wirecall::broker
