// What a node says of the topics that its clients subscribe to: JSON, {"set": [["orders.>", ""], ["jobs", "workers"]],
// "gone": […]}, each a pattern and a group, which is empty for none. Pure. Implements docs/cluster.md "Topics".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::cluster {

/// Collects one text.
class TopicNews {
 public:
  /// Whether the node has such a subscription.
  void add(std::string_view pattern, std::string_view group, bool there);
  [[nodiscard]] bool empty() const noexcept { return set_.empty() && gone_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return set_.size() + gone_.size(); }
  void write(Buffer& out) const;
  /// Begins a new one.
  void clear() noexcept {
    set_.clear();
    gone_.clear();
  }

 private:
  std::string set_;
  std::string gone_;
};

using TopicHandler = std::function<void(std::string_view pattern, std::string_view group, bool there)>;

/// Calls `handler` for each subscription of the text, which is padded. False for one that is no such text: then some
/// may have been told already.
[[nodiscard]] bool read_topic_news(std::string_view json, const Codec& codec, const TopicHandler& handler);

}  // namespace wirecall::cluster
