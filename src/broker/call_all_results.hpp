// CallAllResults: the outcomes of one rpc.call_all: all providers of a method are asked, and the answer is what each of
// them has said. One thread. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/dispatcher.hpp"
#include "wirecall/call.hpp"
#include "wirecall/error.hpp"

namespace wirecall::broker {

class CallAllResults {
 public:
  /// The outcomes together are no larger than `bytes_max`. As long as any is asked for, all count as calls of `load`.
  CallAllResults(std::size_t bytes_max, std::shared_ptr<rpc::PeerLoad> load) noexcept
      : bytes_max_(bytes_max), load_(std::move(load)) {}
  CallAllResults(CallAllResults&&) = delete;
  ~CallAllResults() { load_->calls -= outcomes_.size(); }

  /// One more outcome is waited for, of a client with that name, empty for none. Returns its index.
  std::uint32_t expect(std::string_view client);
  /// What the last outcome answers; before the first one.
  void set_sink(ReplySink sink) noexcept { sink_ = std::move(sink); }
  /// The relayed call by which the outcome of `index` is asked for.
  void set_call(std::uint32_t index, std::uint64_t number) noexcept { outcomes_[index].number = number; }
  /// The outcome of `index`: a value of JSON under `member`, "result" or "error". What there is no memory for becomes
  /// -32603. The last one answers the call.
  void set(std::uint32_t index, std::string_view member, std::string_view json) noexcept;
  void set(std::uint32_t index, const Error& error) noexcept;
  /// Nobody waits for the answer any more. Calls `give_up` with the number of each relayed call that has not ended.
  template <class GiveUp>
  void end(const GiveUp& give_up) noexcept {
    ended_ = true;
    for (const Outcome& outcome : outcomes_) {
      if (!outcome.has_come && outcome.number) give_up(*outcome.number);
    }
  }
  /// The same without a call to be given up.
  void abandon() noexcept { ended_ = true; }
  /// Whether the call has been answered, or nobody waits for that.
  [[nodiscard]] bool has_ended() const noexcept { return ended_; }

 private:
  struct Outcome {
    std::string json;  ///< a whole object once it has come; before, its beginning; empty where there was no memory
    std::optional<std::uint64_t> number;
    bool has_come = false;
  };

  void finish();

  std::size_t bytes_max_;
  std::shared_ptr<rpc::PeerLoad> load_;
  ReplySink sink_;
  std::vector<Outcome> outcomes_;
  std::size_t bytes_ = 0;
  std::size_t left_ = 0;
  bool ended_ = false;
};

}  // namespace wirecall::broker
