// Outcomes: a checker that knows nothing of brokers. Each call is noted with who made it and a nonce; each answer has
// to come once, to that caller, with that nonce. What is wrong is told, and nothing is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace wirecall::test {

class Outcomes {
 public:
  using Caller = std::size_t;

  /// `caller` makes a call by that id; a result has to hold the nonce that is returned.
  std::uint64_t made(Caller caller, std::string id) {
    waiting_.emplace(std::pair{caller, std::move(id)}, ++nonce_);
    return nonce_;
  }
  /// `caller` was answered with a result that holds `nonce`.
  void answered(Caller caller, const std::string& id, std::uint64_t nonce) {
    const auto call = waiting_.find({caller, id});
    if (call == waiting_.end()) return wrong(caller, id, "was answered, and did not wait");
    if (call->second != nonce) wrong(caller, id, "was given the answer to another call");
    waiting_.erase(call);
    ++results_;
  }
  void refused(Caller caller, const std::string& id) {
    if (waiting_.erase({caller, id}) == 0) wrong(caller, id, "was refused, and did not wait");
    ++errors_;
  }
  /// Nothing is due to the caller any more.
  void left(Caller caller) {
    std::erase_if(waiting_, [caller](const auto& call) { return call.first.first == caller; });
  }
  [[nodiscard]] bool waits(Caller caller, const std::string& id) const { return waiting_.contains({caller, id}); }
  /// All calls must have ended.
  void close() {
    for (const auto& [call, nonce] : waiting_) wrong(call.first, call.second, "was never answered");
    waiting_.clear();
  }

  [[nodiscard]] const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }
  [[nodiscard]] std::size_t results() const noexcept { return results_; }
  [[nodiscard]] std::size_t errors() const noexcept { return errors_; }

 private:
  void wrong(Caller caller, const std::string& id, const std::string& what) {
    mistakes_.push_back("caller " + std::to_string(caller) + ", call " + id + ": " + what);
  }

  std::map<std::pair<Caller, std::string>, std::uint64_t> waiting_;
  std::uint64_t nonce_ = 0;
  std::vector<std::string> mistakes_;
  std::size_t results_ = 0;
  std::size_t errors_ = 0;
};

}  // namespace wirecall::test
