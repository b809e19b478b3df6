// Retained: the last event of each topic that was published to be kept, for those who subscribe later. Bounded in
// bytes. Who looks for what a pattern matches does so in pieces (Walk), each of bounded steps. One thread. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

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
  /// Calls visit(topic, message) for each topic from `next` on that `pattern`, a valid one, matches, by their names,
  /// until it returns false, or `steps` are used up. Takes what it needs off `steps`: one to begin, one for each topic
  /// looked at, and one for each kStepBytes of a message visited. Returns whether it is done; if not, `next` is where
  /// to go on.
  template <class Visit>
  bool walk(std::string_view pattern, std::string& next, std::size_t& steps, const Visit& visit) const {
    if (steps == 0) return false;
    --steps;
    const std::string_view prefix = pattern.substr(0, pattern.find_first_of("*>"));
    const bool exact = prefix.size() == pattern.size();
    auto at = exact ? messages_.find(pattern) : messages_.lower_bound(std::max<std::string_view>(prefix, next));
    for (; at != messages_.end(); ++at) {
      const std::string& topic = at->first;
      if (!topic.starts_with(prefix)) return true;
      if (steps == 0) {
        next = topic;
        return false;
      }
      --steps;
      if (matches(pattern, topic)) {
        if (!visit(topic, at->second)) {
          next = topic;
          return false;
        }
        steps -= std::min(steps, at->second.size() / kStepBytes);
      }
      if (exact) return true;
    }
    return true;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  static constexpr std::size_t kStepBytes = 1024;

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
