// Turns: what several ask for, in a line of each, of which one comes after the other: whoever has asked for much waits
// for itself. One thread.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

namespace wirecall::local_store {

template <class T>
class Turns {
 public:
  [[nodiscard]] bool empty() const noexcept { return order_.empty(); }
  void add(const std::string& asker, T one) {
    std::deque<T>& line = lines_[asker];
    if (line.empty()) order_.push_back(asker);
    line.push_back(std::move(one));
  }
  /// The first of whose turn it is, which is not empty. That one has its next turn after all others.
  [[nodiscard]] T take() {
    const auto line = lines_.find(order_.front());
    T first = std::move(line->second.front());
    line->second.pop_front();
    if (line->second.empty())
      lines_.erase(line);
    else
      order_.push_back(order_.front());
    order_.pop_front();
    return first;
  }

 private:
  std::unordered_map<std::string, std::deque<T>> lines_;  // none is empty
  std::deque<std::string> order_;                         // of their askers
};

}  // namespace wirecall::local_store
