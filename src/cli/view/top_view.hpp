// What `wirecall top` shows: lines for a window of some size, made of two answers of rpc.stats. Pure; the terminal is
// screen.hpp's.
#pragma once

#include "cli/view/broker_stats.hpp"
#include "cli/view/screen.hpp"

namespace wirecall::cli {

/// The broker when it was asked last, and before that.
struct BrokerSamples {
  std::string url;
  BrokerStats now;
  BrokerStats before;   ///< no later than `now`
  std::string trouble;  ///< why `now` is not up to date; empty where it is
};

/// So many lines and characters as the window has, at most. The busiest methods come first; those for which there is no
/// room are counted.
[[nodiscard]] std::vector<ScreenLine> top_lines(const BrokerSamples& observed, WindowSize size);

}  // namespace wirecall::cli
