// Outcomes: a checker without knowledge of brokers. It records each call with its caller and a nonce; each answer has
// to arrive once, at that caller, with that nonce. It reports every violation, and forgets nothing.
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

  /// `caller` makes a call with that id; its result has to hold the returned nonce.
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
  /// No more answers are due to the caller.
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
