// RetainedReplica: which version of each topic's retained event this node has, and of which it knows that it is gone.
// All nodes have the same in the end: of two versions the later one by (Lamport counter, node, epoch) stays, without
// any wall clock. What is gone is remembered for kGoneKept, and no more than kGoneMax of them. Where all together have
// no room, the oldest versions give way, on each node the same. The events themselves are the EventBus's. Owned by the
// Cluster. One thread. Implements docs/cluster.md "Retained events".
#pragma once

#include <chrono>
#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "broker/router.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::cluster {

struct RetainedVersion {
  std::uint64_t counter = 0;  ///< larger than all that its writer knew
  std::string node;           ///< the writer
  std::uint64_t epoch = 0;    ///< the writer's

  [[nodiscard]] auto operator<=>(const RetainedVersion&) const = default;
};

/// What is said of one topic: JSON, and behind a line feed the event, unless it is gone. Or nothing but `ask` or
/// `digest`.
struct RetainedHead {
  std::optional<std::string> topic;
  std::uint64_t counter = 0;
  std::string node;
  std::string epoch;  // hexadecimal
  std::string owner;
  std::string client;
  bool gone = false;
  bool told = false;                  ///< the event itself has been sent to the same node besides
  bool ask = false;                   ///< the receiver is to say all that it has
  std::optional<std::string> digest;  ///< of all that the sender has, hexadecimal
};

class RetainedReplica {
 public:
  static constexpr std::chrono::hours kGoneKept{1};
  static constexpr std::size_t kGoneMax = 65'536;
  /// Beyond, a version is none of ours: the counter would run out.
  static constexpr std::uint64_t kCounterMax = std::uint64_t{1} << 53;

  struct Settings {
    std::string own;
    std::uint64_t epoch;
    std::size_t bytes_max;  ///< of all events
  };
  RetainedReplica(broker::Router& router, Settings settings) : router_(&router), settings_(std::move(settings)) {}
  RetainedReplica(RetainedReplica&&) = delete;

  /// A client of this node has had it retained, or deleted.
  void wrote(std::string_view topic, bool gone, std::chrono::nanoseconds now);

  enum class Taken : std::uint8_t {
    malformed,
    known,    ///< as it is, or a later one
    newer,    ///< than what this node had: it has it now
    outdone,  ///< the node itself has written something else since it began anew: that has to be told again
  };
  /// What another node says of a topic. Throws std::bad_alloc.
  [[nodiscard]] Taken take(const RetainedHead& head, std::string_view event, std::chrono::nanoseconds now);
  /// Writes what this node has of the topic; nothing where it knows nothing of it.
  void write(std::string_view topic, bool told, Buffer& out) const;
  /// The first topic behind `after` of which it knows anything; null for none.
  [[nodiscard]] const std::string* next(std::string_view after) const noexcept;
  [[nodiscard]] bool knows(std::string_view topic) const noexcept { return topics_.contains(topic); }
  /// The same wherever the same is retained.
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
  [[nodiscard]] std::chrono::nanoseconds changed_at() const noexcept { return changed_at_; }
  void expire(std::chrono::nanoseconds now) noexcept;
  /// Entries, of what is gone as well.
  [[nodiscard]] std::size_t size() const noexcept { return topics_.size(); }

 private:
  struct Entry {
    RetainedVersion version;
    bool gone = true;
  };
  using Topics = std::map<std::string, Entry, std::less<>>;
  struct Earlier {
    [[nodiscard]] bool operator()(const Topics::value_type* a, const Topics::value_type* b) const noexcept {
      if (const auto order = a->second.version <=> b->second.version; order != 0) return order < 0;
      return a->first < b->first;
    }
  };
  struct Gone {
    std::string topic;
    std::uint64_t counter;  // of its version
    std::chrono::nanoseconds at;
  };

  void set(std::string_view topic, RetainedVersion version, bool gone, std::chrono::nanoseconds now);
  void remove_oldest() noexcept;

  broker::Router* router_;
  const Settings settings_;
  Topics topics_;
  std::set<const Topics::value_type*, Earlier> live_;
  std::deque<Gone> gone_;  // the oldest first; one may have been written anew since
  std::uint64_t counter_ = 0;
  std::uint64_t digest_ = 0;
  std::chrono::nanoseconds changed_at_{0};
};

/// Splits what RetainedReplica::write has written; nothing for what is none.
struct RetainedText {
  RetainedHead head;
  std::string_view event;
};
[[nodiscard]] std::optional<RetainedText> read_retained(std::string_view text);
[[nodiscard]] std::string ask_for_retained();
[[nodiscard]] std::string tell_digest(std::uint64_t digest);

}  // namespace wirecall::cluster
