// CacheFlight: one run of a cached method's function, for all calls that wait for its result. It is a peer of its own,
// so that the function's call depends on none of theirs: a caller that gives up leaves the others, and when all have
// given up the function is asked to stop. The table of its LoopCache keeps it as long as calls may join it; then only
// the function does. One thread (the loop's).
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "rpc/pending.hpp"
#include "rpc/result_cache.hpp"
#include "rpc/served_peer.hpp"

namespace wirecall::rpc {

class LoopCache;

/// The same value in another encoding; nullopt where it has no form there. Throws std::bad_alloc.
[[nodiscard]] std::optional<CachedValue> transcoded(LoopCodecs& codecs, const CachedValue& value, Encoding encoding);

class CacheFlight final : public MessageSink, public std::enable_shared_from_this<CacheFlight> {
 public:
  CacheFlight(LoopCache& cache, std::string_view key, std::uint64_t hash, const Limits& limits, MessageForm form);
  ~CacheFlight();

  [[nodiscard]] std::string_view key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

  /// Detaches the call, which is answered as the function is.
  void add(Call& call);
  /// Calls the function, once, with the params of `message`, which lasts until it returns.
  void run(const Received& message);
  /// The loop has ended: nobody is answered any more.
  void abandon() noexcept;

 private:
  struct Waiter;
  struct OnStop {
    CacheFlight* flight;
    Waiter* waiter;
    void operator()() const noexcept { flight->stopped(*waiter); }
  };
  struct Answered {
    ReplySink sink;
    Encoding encoding;
  };
  struct Waiter : Answered {
    explicit Waiter(Answered answered) noexcept : Answered(std::move(answered)) {}

    bool asked_to_stop = false;
    std::list<Waiter>::iterator place;
    std::optional<std::stop_callback<OnStop>> on_stop;
  };

  // Of the function's one answer.
  Buffer& open_message() override;
  void close_message() override { compact_ = false; }
  void close_compact_as(MessageForm) override { compact_ = true; }
  void discard_message() noexcept override { text_.clear(); }
  void lose_answer() noexcept override { text_.clear(); }

  void stopped(Waiter& waiter) noexcept;
  void finished(int code);
  [[nodiscard]] std::optional<CachedValue> result();
  [[nodiscard]] bool read_as_json(Buffer& json, Received& received);
  void answer_all(CachedValue first);
  void fail_all(int code);
  [[nodiscard]] std::optional<Answered> next_waiter() noexcept;
  void leave_table() noexcept;

  LoopCache* cache_;  // null once the loop has ended
  const std::string key_;
  const std::uint64_t hash_;
  const Limits limits_;
  const MessageForm form_;
  Buffer text_;
  bool compact_ = false;
  bool counted_twice_ = false;  // its call is, as those that wait for it are in flight, too
  bool finished_ = false;
  std::string id_;
  ServedPeer peer_;
  PendingCalls pending_;
  std::list<Waiter> waiters_;
  std::size_t waiting_ = 0;  // of those that have not been asked to stop
  // Of the call that was given up last: its place is taken until the function has noticed.
  ReplySink last_;
};

}  // namespace wirecall::rpc
