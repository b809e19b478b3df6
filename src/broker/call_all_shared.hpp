// What the relayed calls of one rpc.call_all share: the request that all providers of a method are asked by, and the
// outcomes, which together are the answer. Another node is asked once for those of all of its clients. One thread.
// Pure.
#pragma once

#include "rpc/dispatcher.hpp"
#include "rpc/load_bytes.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

/// What rpc.call_all asks each provider of a method, written once for all of them: what differs, the id and the time
/// that is left, is put in as it is sent. It is kept as long as one of them has not been sent it, and counts once among
/// what is kept for its caller.
class RequestToAll {
 public:
  /// What is left of a call's time when the last provider has had its own: for putting together what has come.
  static constexpr std::chrono::milliseconds kToAnswer{50};

  struct Parts {
    std::string_view from;  ///< as BrokerContext::from_of says it; empty for none
    std::string_view method;
    std::string_view params;          ///< an array or object; empty for none
    std::string_view progress_token;  ///< a member's value in these, which goes with its member; empty for none
    bool timed;                       ///< it says how much time is left
  };

  /// `caller`: its members that go on as they are. Throws std::bad_alloc.
  RequestToAll(const Parts& parts, const Received& caller);

  /// Counts among what is kept for that connection until it goes.
  void keep_for(const std::shared_ptr<rpc::PeerLoad>& load) noexcept { held_.set(load, text_.size()); }

  /// `left` is said where the request is timed. Throws std::bad_alloc.
  void append_to(Buffer& out, std::string_view id, std::chrono::milliseconds left) const;
  struct ForNode {
    std::string_view from;  ///< JSON text; empty for none
    std::optional<std::chrono::milliseconds> left;
    bool of_process;  ///< the method is one of the node's own process
  };
  /// The same for another node. It is asked for what all of its clients say who provide the method: by rpc.call_all,
  /// with so much time for these. A method of its own process is called as any is.
  void append_for_node(Buffer& out, std::string_view id, const ForNode& node) const;

  /// How long it is, but for what is put in.
  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }
  [[nodiscard]] std::string_view text() const noexcept { return text_.view(); }
  /// Empty for none.
  [[nodiscard]] std::string_view params() const noexcept { return text().substr(params_at_, params_bytes_); }

 private:
  Buffer text_;
  std::size_t method_at_;  // the member
  std::size_t asked_end_;  // behind it and the params
  std::size_t params_at_ = 0;
  std::size_t params_bytes_ = 0;
  std::optional<std::size_t> time_at_;
  std::size_t id_at_;
  rpc::HeldBytes held_;
};

/// The outcomes, each what one provider has said.
class CallAllResults {
 public:
  /// The outcomes together are no larger than `bytes_max`. As long as any is asked for, all count as calls of `load`.
  CallAllResults(std::size_t bytes_max, std::shared_ptr<rpc::PeerLoad> load) noexcept
      : bytes_max_(bytes_max), load_(std::move(load)) {}
  CallAllResults(CallAllResults&&) = delete;
  ~CallAllResults() { load_->calls -= calls_; }

  /// One more outcome is waited for, of a client with that name, empty for none. Returns its index.
  std::uint32_t expect(std::string_view client);
  /// The same of all clients of another node, which count as so many calls.
  std::uint32_t expect_node(std::string_view node, std::size_t clients);
  /// What the last outcome answers; before the first one.
  void set_sink(ReplySink sink) noexcept { sink_ = std::move(sink); }
  /// The relayed call by which the outcome of `index` is asked for.
  void set_call(std::uint32_t index, std::uint64_t number) noexcept { outcomes_[index].number = number; }
  /// The outcome of `index`: a value of JSON under `member`, "result" or "error". What there is no memory for becomes
  /// -32603. The last one answers the call.
  void set(std::uint32_t index, std::string_view member, std::string_view json) noexcept;
  void set(std::uint32_t index, const Error& error) noexcept;
  /// The outcomes of `index`, which is a node's: objects with commas between.
  void set_all(std::uint32_t index, std::string_view outcomes) noexcept;
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

  std::uint32_t expect(std::string begun, std::size_t calls);
  template <class Append>
  void come(Outcome& outcome, std::size_t bytes, const Append& append) noexcept;
  void finish();

  std::size_t bytes_max_;
  std::shared_ptr<rpc::PeerLoad> load_;
  ReplySink sink_;
  std::vector<Outcome> outcomes_;
  std::size_t calls_ = 0;  // as which they count
  std::size_t bytes_ = 0;
  std::size_t left_ = 0;
  bool ended_ = false;
};

}  // namespace wirecall::broker
