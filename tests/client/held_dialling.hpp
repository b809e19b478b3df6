// Connection attempts; the second one waits until the test releases it.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

#include "client/dialer.hpp"
#include "transport/endpoint_socket.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::net {

class HeldDialling {
 public:
  /// Connects to `endpoint`, whichever endpoint is requested.
  [[nodiscard]] DialFunction to(const Endpoint& endpoint) const {
    return [state = state_, endpoint](const Endpoint&, std::chrono::milliseconds timeout) {
      if (state->count++ == 1) {
        state->second.set_value();
        state->may_go_on.wait();
      }
      return transport::connect_to(endpoint, timeout);
    };
  }
  /// Waits for the begin of the second attempt. Call it once.
  void await_second() { state_->second.get_future().wait(); }
  void let_go_on() { state_->go_on.set_value(); }

 private:
  // Shared with the threads that dial, which may outlive the client and the test.
  struct State {
    std::atomic<int> count{0};
    std::promise<void> second;
    std::promise<void> go_on;
    std::shared_future<void> may_go_on{go_on.get_future()};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace wirecall::net
