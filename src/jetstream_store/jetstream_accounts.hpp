// JetStreamAccounts: how many events each principal has in the streams of a JetStreamStore, and how much they hold. It
// is counted by the subjects of its messages about each second while the principal publishes, for all brokers together.
// Thread: the loop's.
#pragma once

#include <map>

#include "jetstream_store/jetstream.hpp"

namespace wirecall::jetstream_store {

/// Of the events of one principal; 0 for no limit.
struct AccountLimits {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;
};

class JetStreamAccounts {
 public:
  /// `jetstream` and `scheduler` outlive all calls.
  JetStreamAccounts(const AccountLimits& limits, JetStream& jetstream, Scheduler& scheduler)
      : limits_(limits), jetstream_(&jetstream), scheduler_(&scheduler) {}
  JetStreamAccounts(JetStreamAccounts&&) = delete;
  ~JetStreamAccounts() = default;

  /// A stream whose subjects are `prefix`, the principal's token, a size, and the topic.
  void add_stream(std::string name, std::string prefix) { streams_.emplace_back(std::move(name), std::move(prefix)); }
  /// Whether the principal has no more than it may once it has one more event that holds so much: `then` is called,
  /// maybe from within, with nothing, or with why not. What nobody has published is on no account.
  void require_room(const std::string& principal, std::size_t bytes, durable::Then<durable::Done> then);

 private:
  struct Waiting {
    std::uint64_t bytes;
    durable::Then<durable::Done> then;
  };
  struct Account {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds until{};  // it may be counted with
    std::vector<Waiting> waiting = {};
  };

  [[nodiscard]] std::optional<durable::Failure> why_full(const Account& account, std::uint64_t bytes) const;
  void read(const std::string& token);
  void read_stream(const std::string& token, std::size_t at, std::shared_ptr<Account> read);
  void answer(const std::string& token, const durable::Outcome<durable::Done>& outcome);

  const AccountLimits limits_;
  JetStream* jetstream_;
  Scheduler* scheduler_;
  std::vector<std::pair<std::string, std::string>> streams_;
  std::map<std::string, Account, std::less<>> accounts_;  // by token
};

}  // namespace wirecall::jetstream_store
