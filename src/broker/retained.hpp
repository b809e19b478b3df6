// Retained: the last event of each topic that was published to be kept, for those who subscribe later. Bounded in
// bytes. One thread. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/words.hpp"

namespace wirecall::broker {

class Retained {
 public:
  explicit Retained(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

  /// Keeps `message`, in place of what there was of this topic. False, and nothing is changed, when it has no room.
  [[nodiscard]] bool keep(std::string_view topic, std::string_view message) {
    const auto found = messages_.find(topic);
    const std::size_t before = found != messages_.end() ? cost(topic, found->second) : 0;
    const std::size_t after = cost(topic, message);
    if (bytes_ - before + after > bytes_max_) return false;
    std::string text{message};
    if (found != messages_.end()) {
      found->second = std::move(text);
    } else {
      messages_.emplace(topic, std::move(text));
    }
    bytes_ = bytes_ - before + after;
    return true;
  }
  void clear(std::string_view topic) noexcept {
    const auto found = messages_.find(topic);
    if (found == messages_.end()) return;
    bytes_ -= cost(topic, found->second);
    messages_.erase(found);
  }
  /// Calls visit(topic, message) for each topic from `first` on that `pattern` matches, by their names, until it
  /// returns false. Returns whether it has for all.
  template <class Visit>
  bool each(std::string_view pattern, std::string_view first, const Visit& visit) const {
    if (!has_wildcard(pattern)) {
      const auto found = messages_.find(pattern);
      return found == messages_.end() || visit(found->first, found->second);
    }
    for (auto at = messages_.lower_bound(first); at != messages_.end(); ++at) {
      if (matches(pattern, at->first) && !visit(at->first, at->second)) return false;
    }
    return true;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kOverhead = 128;  // of one in the map
  [[nodiscard]] static std::size_t cost(std::string_view topic, std::string_view message) noexcept {
    return topic.size() + message.size() + kOverhead;
  }

  std::map<std::string, std::string, std::less<>> messages_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_;
};

}  // namespace wirecall::broker
