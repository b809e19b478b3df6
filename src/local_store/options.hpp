// What a LocalStore is told: where it is, when changes are safe, what is kept, and how much.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "durable/store.hpp"

namespace wirecall::local_store {

/// When changes are safe: what is answered may be lost by a loss of power with `everysec`, of the last second; never by
/// the end of the process.
enum class Fsync : std::uint8_t { always, everysec };

/// Who has had the file before it is opened.
enum class Opening : std::uint8_t {
  first,   ///< nobody knows: it is looked at as a whole, unless it is large
  handed,  ///< another process, which has just let go of it, and takes it back if this one does not come up
  again    ///< this process: jobs that ran go on running; with the others they wait again once it is asked for anything
};

struct LocalStoreOptions {
  std::string folder;  ///< made where it is not there
  Fsync fsync = Fsync::always;
  std::vector<durable::TopicRule> rules = {};
  std::uint64_t dedup_ms = 120'000;       ///< for which a msg_id is remembered
  std::uint64_t result_ms = 3'600'000;    ///< for which the result of a job is kept
  std::uint64_t queue_count = 1'000'000;  ///< jobs of one method that are not done, and results, at most
  /// Of params of jobs of one method that are not done; and again of params and results of those that are.
  std::uint64_t queue_bytes = 1ULL << 30;
  std::uint64_t principal_bytes = 256ULL << 20U;  ///< the same of one principal, over all methods
  std::uint64_t principal_jobs = 1'000'000;       ///< jobs of one principal that are not done, over all methods
  std::uint64_t principal_events = 0;             ///< events of one principal, over all topics; 0 for no limit
  std::uint64_t principal_event_bytes = 0;  ///< what these hold, as TopicRule::max_bytes counts it; 0 for no limit
};

/// The rule of the topics that no other says anything of.
[[nodiscard]] inline durable::TopicRule default_rule() {
  return {.pattern = {}, .max_age_ms = 7ULL * 86'400'000, .max_bytes = 1ULL << 30U, .max_count = 1'000'000};
}

}  // namespace wirecall::local_store
