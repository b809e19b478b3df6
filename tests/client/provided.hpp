// Methods that clients provide in tests.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "wirecall/context.hpp"
#include "wirecall/error.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {

inline int add(int a, int b) { return a + b; }

/// Block after block: 1, 2, …
inline Stream<int> blocks(Context context, std::string kind) {
  if (kind != "newHeads") throw Error{ErrorCode::invalid_params, "no such kind: " + kind};
  for (int number = 1;; ++number) {
    co_yield number;
    co_await sleep_for(context, std::chrono::milliseconds{1});
  }
}

inline const SubscriptionNames kEthereum{
    .subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"};

}  // namespace wirecall::net
