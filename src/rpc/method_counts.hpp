// MethodCounts: what is counted of the calls of one method, and OwnCounts: of each method of the process's own, where
// somebody asks for them (a broker; base for rpc.stats). One thread (the loop's).
#pragma once

#include <algorithm>
#include <new>

#include "base/histogram.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

struct MethodCounts {
  /// In nanoseconds, to an eighth, up to 18 minutes; in 4.6 KiB.
  using Latency = Histogram<4, 40>;

  std::uint64_t calls = 0;   ///< taken for the method
  std::uint64_t errors = 0;  ///< of these, answered with an error, or given up
  Latency latency;           ///< of those that have been timed: from the request to the response

  void record(std::chrono::nanoseconds time) noexcept {
    latency.record(static_cast<std::uint64_t>(std::max(time, std::chrono::nanoseconds{0}).count()));
  }
};

struct OwnCountsRow : MethodCounts {
  std::size_t waiting = 0;                     ///< calls that have begun to wait and are not answered
  std::uint64_t timed_in = ~std::uint64_t{0};  ///< the turn in which a call has been timed last
};

class OwnCounts {
 public:
  /// The method's, made with its first call; null for one that is not the process's own, and for want of memory.
  [[nodiscard]] OwnCountsRow* of(const Method& method) noexcept {
    const std::size_t index = method.index();
    if (index < rows_.size() && rows_[index]) [[likely]]
      return rows_[index].get();
    return index != ~std::size_t{0} ? make(index) : nullptr;
  }
  /// Null before the first call.
  [[nodiscard]] const OwnCountsRow* find(const Method& method) const noexcept {
    return method.index() < rows_.size() ? rows_[method.index()].get() : nullptr;
  }

 private:
  [[gnu::noinline]] OwnCountsRow* make(std::size_t index) noexcept {
    try {
      if (index >= rows_.size()) rows_.resize(index + 1);
      rows_[index] = std::make_unique<OwnCountsRow>();
      return rows_[index].get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  std::vector<std::unique_ptr<OwnCountsRow>> rows_;
};

}  // namespace wirecall::rpc
